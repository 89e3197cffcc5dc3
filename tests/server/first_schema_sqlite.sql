BEGIN TRANSACTION;
CREATE TABLE jobs (
        place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
        parameters TEXT NOT NULL,
        files TEXT NOT NULL, limits TEXT NOT NULL, max_running BIGINT NOT NULL, state TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, started DOUBLE PRECISION, ended DOUBLE PRECISION, expires DOUBLE PRECISION,
        keep_s DOUBLE PRECISION NOT NULL, lease TEXT, lease_until DOUBLE PRECISION, worker TEXT,
        stage TEXT, done BIGINT, total BIGINT, runs BIGINT NOT NULL DEFAULT 0, crashes BIGINT NOT NULL DEFAULT 0,
        lost BIGINT NOT NULL DEFAULT 0, error_code TEXT, error TEXT, result TEXT);
INSERT INTO "jobs" VALUES(1,'00000000000000000000000000000000','aaaaaaaaaaaaaaaa','anonymize','swapmob','{"seed": 0}','{"data": "a.csv"}','{"max_seconds": 3600}',4,'done',1.79479307624799013138e+09,1.79479307625000190735e+09,1.79479307625000190735e+09,4.94839307625000190735e+09,3153600000.0,NULL,1001794793076.25,'host:1','starting',0,0,1,0,0,NULL,NULL,'{"lease": "7b475a61a35ddad2acf5a20a131b626a", "name": "release.zip", "bytes": 1234, "sha256": "00", "media_type": "application/zip"}');
INSERT INTO "jobs" VALUES(2,'00000000000000000000000000000001','aaaaaaaaaaaaaaaa','anonymize','swapmob','{}','{"data": "a.csv"}','{"max_seconds": 3600}',4,'failed',1.79479307624799013138e+09,1.79479307625100755692e+09,1.79479307625100755692e+09,NULL,3153600000.0,NULL,1.00179479307625097656e+12,'host:1','starting',0,0,1,0,0,'bad_input','a.csv: wanted rows.',NULL);
INSERT INTO "jobs" VALUES(3,'00000000000000000000000000000002','aaaaaaaaaaaaaaaa','anonymize','swapmob','{"seed": 2}','{"data": "a.csv"}','{"max_seconds": 3600}',4,'running',1.79479307624899601936e+09,1.79479307625100755692e+09,NULL,NULL,3153600000.0,'cccccccccccccccccccccccccccccccc',1.00179479307625097656e+12,'host:1','starting',0,0,1,0,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,'00000000000000000000000000000003','aaaaaaaaaaaaaaaa','anonymize','swapmob','{}','{"data": "a.csv"}','{"max_seconds": 3600}',4,'cancelled',1.79479307624899601936e+09,NULL,1.7947930762520134449e+09,NULL,3153600000.0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(5,'00000000000000000000000000000004','aaaaaaaaaaaaaaaa','anonymize','swapmob','{"seed": 4}','{"data": "a.csv"}','{"max_seconds": 3600}',4,'queued',1.79479307624899601936e+09,NULL,NULL,NULL,3153600000.0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL,NULL,NULL);
CREATE TABLE log (id INTEGER PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, job TEXT);
INSERT INTO "log" VALUES(1,1.79479307624601864815e+09,'operator','made the token anna',NULL);
INSERT INTO "log" VALUES(2,1.79479307624601864815e+09,'operator','made the token bert',NULL);
INSERT INTO "log" VALUES(3,1.79479307624698424339e+09,'operator','revoked the token bert',NULL);
INSERT INTO "log" VALUES(4,1.79479307624799013138e+09,'aaaaaaaaaaaaaaaa','put a job to anonymize into the queue','00000000000000000000000000000000');
INSERT INTO "log" VALUES(5,1.79479307624799013138e+09,'aaaaaaaaaaaaaaaa','put a job to anonymize into the queue','00000000000000000000000000000001');
INSERT INTO "log" VALUES(6,1.79479307624899601936e+09,'aaaaaaaaaaaaaaaa','put a job to anonymize into the queue','00000000000000000000000000000002');
INSERT INTO "log" VALUES(7,1.79479307624899601936e+09,'aaaaaaaaaaaaaaaa','put a job to anonymize into the queue','00000000000000000000000000000003');
INSERT INTO "log" VALUES(8,1.79479307624899601936e+09,'aaaaaaaaaaaaaaaa','put a job to anonymize into the queue','00000000000000000000000000000004');
INSERT INTO "log" VALUES(9,1.79479307625000190735e+09,'worker','finished a job','00000000000000000000000000000000');
INSERT INTO "log" VALUES(10,1.79479307625100755692e+09,'worker','failed a job (bad_input)','00000000000000000000000000000001');
INSERT INTO "log" VALUES(11,1.7947930762520134449e+09,'aaaaaaaaaaaaaaaa','ended a job and removed its files','00000000000000000000000000000003');
CREATE TABLE tokens (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, limits TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION);
INSERT INTO "tokens" VALUES('aaaaaaaaaaaaaaaa','anna','6c30a70ffe25cd751d6d9814b5f1b95278c5f9616df9644e316894103686917d','{"max_running": 2}',1.79479307624601864815e+09,NULL);
INSERT INTO "tokens" VALUES('bbbbbbbbbbbbbbbb','bert','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','{}',1.79479307624601864815e+09,1.79479307624698424339e+09);
CREATE INDEX jobs_by_state ON jobs (state, place);
CREATE INDEX jobs_by_owner ON jobs (owner, place);
COMMIT;
