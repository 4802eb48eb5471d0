//! Execution of a job, from the first scan of the rows to the last line of the output.
//!
//! [`runner`] owns the state of a running job, [`request_set`] tracks its requests, [`request`] sends a
//! single one, and [`escalation`] decides what is requested next for a pack. The runner starts another
//! pack when [`pack_feeder`] finds capacity for it.

mod batch;
mod config;
mod escalation;
mod failures;
mod items;
mod job;
mod layout;
mod output;
mod output_buffer;
mod pack_feeder;
mod pack_reader;
mod progress;
mod record;
mod request;
mod request_set;
mod resume;
mod resumed_output;
mod runner;
mod scan;
mod usage;

pub use config::{HeldRows, JobConfig, JobPlan, batch_path, is_same_file, journal_path};
pub use items::map_items;
pub use job::Job;
pub use progress::{JobOutcome, JobProgress, StopReason};
