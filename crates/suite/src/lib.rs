//! Suite file of Bakeoff: reading, validation and JSON Schema.
//!
//! [`Suite::load`] turns a `bakeoff.toml` (or a FastSkill project) into targets, cases, checks, roles
//! and settings, or into a list of problems with their positions. This crate makes no calls and runs no
//! trials.

mod agents;
mod case;
mod case_error;
mod chain;
mod check_fields;
mod checks;
mod combinations;
mod coverage;
mod digests;
mod env_file;
mod fastskill;
mod ignored_settings;
mod limits;
mod load_options;
mod matrix;
mod media;
mod models;
mod pricing;
mod problem;
mod programs;
mod race;
mod resolve;
mod roles;
mod roles_file;
mod schema;
mod select;
mod service;
mod settings;
mod spec;
mod suite;
mod target_defaults;
mod targets;
mod template;
mod template_value;
mod tree;
mod variables;
mod workspaces;

pub use agents::AgentSettings;
pub use case::{Attachment, Case, CaseReader, CaseSource, OwnRule, Survey};
pub use case_error::CaseError;
pub use chain::{ChainStep, ChainTarget};
pub use checks::{CheckSpec, PYTHON_PROGRAM};
pub use env_file::EnvFile;
pub use limits::describe as describe_limits;
pub use load_options::LoadOptions;
pub use pricing::{PRICES_HINT, TrialPricing};
pub use problem::{Problem, SourcePosition, SuiteError, suggest};
pub use programs::{PROMPT_PLACEHOLDER, ProgramTarget, Protocol};
pub use race::{race_targets, render_for_race};
pub use schema::schema;
pub use select::{SelectBudget, SelectMeasure, SelectObjective, SelectPlan};
pub use service::{ServiceTarget, UsagePaths};
pub use settings::{Artifacts, Budget, CacheScope, EarlyStop, Settings};
pub use spec::MAX_TRIALS;
pub use suite::{FastSkillProject, SUITE_FILE_NAME, Suite, SuiteModels, suite_models};
pub use targets::{ModelTarget, Target, TargetKind};
pub use template::{RenderError, Template, with_texts};
pub use workspaces::WorkspaceOrigin;
