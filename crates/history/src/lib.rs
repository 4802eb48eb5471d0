//! Finished and interrupted runs on disk.
//!
//! [`find_run`] and [`list`] find runs, [`PastRun`] reads one, [`compare`] compares targets, [`score`]
//! checks stored outputs again, and [`resume_state`] reads what [`bakeoff_eval::Run`] needs to continue
//! an interrupted run. This crate makes no call and renders nothing.

mod compare;
mod differences;
mod list;
mod past;
mod resume;
mod score;
mod stored;

pub use bakeoff_eval::Error;
pub use compare::{CompareConfig, Compared, compare, pairs};
pub use list::{RunState, StoredRun, list};
pub use past::PastRun;
pub use resume::resume_state;
pub use score::score;
pub use stored::{Entries, Traced, find_run, http_log, limit_log};
