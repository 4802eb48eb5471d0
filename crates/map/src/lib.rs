//! Batched processing of rows: several rows share a request, and each row gets its own answer.
//!
//! A [`Task`] holds the instructions and the fields of an answer. A [`Job`] reads [`Rows`], packs them
//! ([`Packer`]), sends the packs to models, and writes every row with its answer or the reason why there
//! is none. [`map_items`] does the same for items in memory. The parts below are pure: [`ids`] assigns the ids by which answers are matched with rows,
//! and [`choose_pack_size`] chooses the number of items per request.
//!
//! ```
//! use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
//! use bakeoff_map::{Job, JobConfig, PackSize, Task, simulated_models};
//! use std::sync::Arc;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let (input, output) = (folder.path().join("rows.csv"), folder.path().join("out.jsonl"));
//! std::fs::write(&input, "name\nAda\nGrace\n")?;
//! let task = "instructions = 'Copy each name.'\n[output.copy]\ntype = 'string'";
//! let task = Task::parse(task)?;
//! let model = Model::resolve(&ModelConfig::named("sim", "map"), &|_| None)?;
//! let models = vec![("sim/map".to_owned(), model)];
//! let mut config = JobConfig::new(input, &output, task, models);
//! config.pack = Some(PackSize::Items(20));
//! let client = Client::new(ClientConfig::default().simulated_models([simulated_models()]));
//! let job = Job::new(config, Arc::new(client))?;
//! assert_eq!((job.plan().rows, job.plan().requests), (2, 1));
//! let outcome = job.run(CancellationToken::new(), &mut |_progress| {}).await?;
//! assert_eq!(outcome.progress.errors, 0);
//! let rows = std::fs::read_to_string(&output)?;
//! assert_eq!(rows.lines().next(), Some(r#"{"name":"Ada","copy":"Ada","error":null}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod error;
mod id;
mod pack;
mod pack_size;
mod prompt;
mod reply;
mod row;
mod rows;
mod run;
mod simulated;
mod task;
mod validate;

pub use answer::{Answer, ItemError};
pub use error::Error;
pub use id::ids;
pub use pack::{Pack, PackLimits, Packer};
pub use pack_size::{BindingLimit, PackChoice, TokenSizes, choose_pack_size};
pub use row::Row;
pub use rows::{RowFormat, Rows, RowsError};
pub use run::{
    HeldRows, Job, JobConfig, JobOutcome, JobPlan, JobProgress, StopReason, batch_path,
    is_same_file, journal_path, map_items,
};
pub use simulated::simulated_models;
pub use task::{
    FIELD_KEYS, Field, FieldType, PackSize, ParsePackSizeError, ParseReplyFormatError, ReplyFormat,
    ReservedNameError, ShownField, TASK_KEYS, Task, TaskError, TaskProblem,
};
