//! Many items, few requests: rows packed into structured requests, each row with its own answer.

mod auto;
mod error;
mod id;
mod pack;
mod prompt;
mod reply;
mod row;
mod rows;
mod run;
mod task;
mod validate;

pub use auto::{Binding, Choice, Sizes, choose};
pub use error::Error;
pub use id::ids;
pub use pack::{Pack, PackLimits, Packer};
pub use row::Row;
pub use rows::{RowFormat, Rows, RowsError};
pub use run::{Finished, Job, JobConfig, JobPlan, Progress, Stop, facts_of, journal_of};
pub use task::{Field, FieldType, Format, PackSize, Shown, Task, TaskProblem};
