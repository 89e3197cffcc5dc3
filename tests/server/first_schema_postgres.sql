CREATE TABLE public.jobs (
    place bigint NOT NULL,
    id text NOT NULL,
    owner text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    parameters text NOT NULL,
    files text NOT NULL,
    limits text NOT NULL,
    max_running bigint NOT NULL,
    state text NOT NULL,
    created double precision NOT NULL,
    started double precision,
    ended double precision,
    expires double precision,
    keep_s double precision NOT NULL,
    lease text,
    lease_until double precision,
    worker text,
    stage text,
    done bigint,
    total bigint,
    runs bigint DEFAULT 0 NOT NULL,
    crashes bigint DEFAULT 0 NOT NULL,
    lost bigint DEFAULT 0 NOT NULL,
    error_code text,
    error text,
    result text
);
ALTER TABLE public.jobs ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.log (
    id bigint NOT NULL,
    at double precision NOT NULL,
    who text NOT NULL,
    what text NOT NULL,
    job text
);
ALTER TABLE public.log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.tokens (
    id text NOT NULL,
    name text NOT NULL,
    hash text NOT NULL,
    limits text NOT NULL,
    created double precision NOT NULL,
    revoked double precision
);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (5, '00000000000000000000000000000004', 'aaaaaaaaaaaaaaaa', 'anonymize', 'swapmob', '{"seed": 4}', '{"data": "a.csv"}', '{"max_seconds": 3600}', 4, 'queued', 1794793077.409548, NULL, NULL, NULL, 3153600000, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (1, '00000000000000000000000000000000', 'aaaaaaaaaaaaaaaa', 'anonymize', 'swapmob', '{"seed": 0}', '{"data": "a.csv"}', '{"max_seconds": 3600}', 4, 'done', 1794793077.405177, 1794793077.412023, 1794793077.412833, 4948393077.412838, 3153600000, NULL, 1001794793077.412, 'host:1', 'starting', 0, 0, 1, 0, 0, NULL, NULL, '{"lease": "0be8a0d1ec6cf5edee459a18c7a8318f", "name": "release.zip", "bytes": 1234, "sha256": "00", "media_type": "application/zip"}');
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (2, '00000000000000000000000000000001', 'aaaaaaaaaaaaaaaa', 'anonymize', 'swapmob', '{}', '{"data": "a.csv"}', '{"max_seconds": 3600}', 4, 'failed', 1794793077.406546, 1794793077.414215, 1794793077.414924, NULL, 3153600000, NULL, 1001794793077.4142, 'host:1', 'starting', 0, 0, 1, 0, 0, 'bad_input', 'a.csv: wanted rows.', NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (4, '00000000000000000000000000000003', 'aaaaaaaaaaaaaaaa', 'anonymize', 'swapmob', '{}', '{"data": "a.csv"}', '{"max_seconds": 3600}', 4, 'cancelled', 1794793077.408513, NULL, 1794793077.416812, NULL, 3153600000, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (3, '00000000000000000000000000000002', 'aaaaaaaaaaaaaaaa', 'anonymize', 'swapmob', '{"seed": 2}', '{"data": "a.csv"}', '{"max_seconds": 3600}', 4, 'running', 1794793077.40757, 1794793077.416144, NULL, NULL, 3153600000, 'cccccccccccccccccccccccccccccccc', 1001794793077.4161, 'host:1', 'starting', 0, 0, 1, 0, 0, NULL, NULL, NULL);
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (1, 1794793077.400835, 'operator', 'made the token anna', NULL);
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (2, 1794793077.402109, 'operator', 'made the token bert', NULL);
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (3, 1794793077.402977, 'operator', 'revoked the token bert', NULL);
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (4, 1794793077.405656, 'aaaaaaaaaaaaaaaa', 'put a job to anonymize into the queue', '00000000000000000000000000000000');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (5, 1794793077.406747, 'aaaaaaaaaaaaaaaa', 'put a job to anonymize into the queue', '00000000000000000000000000000001');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (6, 1794793077.407762, 'aaaaaaaaaaaaaaaa', 'put a job to anonymize into the queue', '00000000000000000000000000000002');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (7, 1794793077.408705, 'aaaaaaaaaaaaaaaa', 'put a job to anonymize into the queue', '00000000000000000000000000000003');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (8, 1794793077.409741, 'aaaaaaaaaaaaaaaa', 'put a job to anonymize into the queue', '00000000000000000000000000000004');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (9, 1794793077.413143, 'worker', 'finished a job', '00000000000000000000000000000000');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (10, 1794793077.415142, 'worker', 'failed a job (bad_input)', '00000000000000000000000000000001');
INSERT INTO public.log OVERRIDING SYSTEM VALUE VALUES (11, 1794793077.417332, 'aaaaaaaaaaaaaaaa', 'ended a job and removed its files', '00000000000000000000000000000003');
INSERT INTO public.tokens VALUES ('aaaaaaaaaaaaaaaa', 'anna', '6c30a70ffe25cd751d6d9814b5f1b95278c5f9616df9644e316894103686917d', '{"max_running": 2}', 1794793077.399746, NULL);
INSERT INTO public.tokens VALUES ('bbbbbbbbbbbbbbbb', 'bert', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '{}', 1794793077.401908, 1794793077.402704);
SELECT pg_catalog.setval('public.jobs_place_seq', 5, true);
SELECT pg_catalog.setval('public.log_id_seq', 11, true);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_id_key UNIQUE (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.log
    ADD CONSTRAINT log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);
CREATE INDEX jobs_by_owner ON public.jobs USING btree (owner, place);
CREATE INDEX jobs_by_state ON public.jobs USING btree (state, place);
