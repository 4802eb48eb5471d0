//! Many items, few requests: rows packed into structured requests, each row with its own answer.

mod auto;
mod id;
mod pack;
mod prompt;
mod reply;
mod row;
mod rows;
mod task;
mod validate;

pub use auto::{Binding, Choice, Sizes, choose};
pub use id::ids;
pub use pack::{Pack, PackLimits, Packer};
pub use row::Row;
pub use rows::{RowFormat, Rows, RowsError};
pub use task::{Field, FieldType, Format, PackSize, Shown, Task, TaskProblem};
