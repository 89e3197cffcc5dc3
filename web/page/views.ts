// Generated from src/crowdveil/server/views.py by `make web`; change the models, not this file.

/** The reason why a job failed. */
export interface ErrorView {
  /** The kind of error, for programs. */
  code: string;
  /** The parameter or file that is wrong. */
  subject: ReferenceView | null;
  /** One sentence, which names fields as the API does. */
  message: string;
  /** The sentence with its references apart, for forms with labels. */
  parts: (string | ReferenceView)[];
}

/** Jobs, newest first. */
export interface JobList {
  jobs: JobView[];
}

/** A job as its owner sees it. */
export interface JobView {
  id: string;
  kind: "anonymize" | "measure" | "analyze" | "attack" | "filter";
  /** The method, measure, analysis or attack. */
  name: string;
  state: "queued" | "running" | "done" | "failed" | "cancelled" | "expired";
  /** Seconds since 1970. */
  created: number;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  /** The time at which the result is removed. */
  expires_at: string | null;
  /** The duration of the run. */
  seconds: number | null;
  /** The number of times it was started: more than once if a worker died. */
  runs: number;
  progress: ProgressView;
  /** The name of each uploaded file, by field. */
  files: Record<string, string>;
  parameters: Record<string, unknown>;
  error: ErrorView | null;
  result: ResultView | null;
  summary: SummaryView | null;
  /** The state of the review; null where none is asked for. */
  review: ReviewView | null;
}

/** The progress of a job. */
export interface ProgressView {
  stage: string | null;
  done: number;
  total: number;
}

/** A reference to a parameter, with its value where one is meant, or to a file, column or method. */
export interface ReferenceView {
  kind: "option" | "name";
  name: string;
  value: string;
  /** Whether the sentence is about it, as in "k: Expected …". */
  subject: boolean;
}

/** The file that a job made. */
export interface ResultView {
  name: string;
  bytes: number;
  sha256: string;
  media_type: string;
}

/** The review of a result. */
export interface ReviewView {
  state: "awaiting" | "approved" | "rejected";
  /** The name of the reviewer's token. */
  by: string | null;
  at: string | null;
  comment: string | null;
}

/** The output of the job, as the command line prints it: notes, and lines. */
export interface SummaryView {
  notes: string[];
  lines: string[];
}

/** An uploaded file. */
export interface UploadView {
  id: string;
  name: string;
  bytes: number;
  /** Time after its last use at which it is removed. */
  keep_seconds: number;
}
