//! The suite file of Bakeoff: reading, validation and JSON Schema.
//!
//! [`Suite::load`] turns a `bakeoff.toml` (or a FastSkill project) into targets, cases, checks, roles
//! and settings as data, or into the list of its problems with their positions. This crate makes no
//! call and does not run trials.

mod agents;
mod case;
mod chain;
mod checks;
mod combinations;
mod coverage;
mod fastskill;
mod form;
mod limits;
mod models;
mod parts;
mod problem;
mod programs;
mod resolve;
mod roles;
mod schema;
mod select;
mod service;
mod settings;
mod spec;
mod suite;
mod targets;
mod template;
mod tree;
mod variables;
mod workspaces;
mod written;

pub use agents::AgentSettings;
pub use case::{Case, CaseReader, CaseSource, Survey};
pub use chain::{ChainTarget, Step};
pub use checks::{CheckSpec, PYTHON_PROGRAM};
pub use limits::describe as describe_limits;
pub use problem::{Problem, SourcePosition, SuiteError, suggest};
pub use programs::{PROMPT_PLACEHOLDER, ProgramTarget, Protocol};
pub use schema::schema;
pub use select::{SelectBudget, SelectObjective, SelectPlan};
pub use service::{ServiceTarget, UsagePaths};
pub use settings::{Artifacts, Budget, CacheScope, EarlyStop, Settings};
pub use spec::MAX_TRIALS;
pub use suite::{LoadOptions, Project, SUITE_FILE_NAME, Suite, SuiteModels, suite_models};
pub use targets::{ModelTarget, Target, TargetKind};
pub use template::{Template, with_texts};
pub use workspaces::WorkspaceOrigin;
