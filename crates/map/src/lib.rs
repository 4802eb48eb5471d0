//! Many items, few requests: rows packed into structured requests, each row with its own answer.
//!
//! A [`Task`] says what is asked about every row and what an answer looks like; a [`Job`] reads
//! [`Rows`], packs them ([`Packer`]), asks models about them, and writes every row with its answer
//! or with the reason why there is none. Below it, pure parts: [`ids`] by which answers find their
//! rows, and [`choose`], which says how many items a request should have.
//!
//! ```
//! use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use bakeoff_map::{HeldRows, Job, JobConfig, PackSize, Task};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let (input, output) = (folder.path().join("rows.csv"), folder.path().join("out.jsonl"));
//! std::fs::write(&input, "name\nAda\nGrace\n")?;
//! let task = "instructions = 'Copy each name.'\n[output.copy]\ntype = 'string'";
//! let task = Task::parse(task).map_err(|problems| format!("{problems:?}"))?;
//! let model = Model::resolve(&ModelConfig::named("sim", "map"), &|_| None)?;
//! let config = JobConfig {
//!     input,
//!     output: output.clone(),
//!     task,
//!     models: vec![("sim/map".to_owned(), model)],
//!     pack: Some(PackSize::Items(20)),
//!     format: None,
//!     seed: 0,
//!     learned: None,
//!     max_cost: None,
//!     force: false,
//!     retry_errors: false,
//!     held: HeldRows::default(),
//! };
//! let job = Job::new(config, Arc::new(Client::new(ClientConfig::default())))?;
//! assert_eq!((job.plan().rows, job.plan().requests), (2, 1));
//! let finished = job.run(CancellationToken::new(), &mut |_progress| {}).await?;
//! assert_eq!(finished.progress.errors, 0);
//! let rows = std::fs::read_to_string(&output)?;
//! assert_eq!(rows.lines().next(), Some(r#"{"name":"Ada","copy":"Ada","error":null}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use run::{
    Finished, HeldRows, Job, JobConfig, JobPlan, Progress, Stop, facts_of, is_same_file, journal_of,
};
pub use task::{
    FIELD_KEYS, Field, FieldType, Format, PackSize, Shown, TASK_KEYS, Task, TaskProblem,
};
