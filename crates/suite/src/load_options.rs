//! Options for loading a suite.

use std::path::Path;

/// Options for loading a suite.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct LoadOptions<'a> {
    /// Names of the targets to load; empty for all. For a FastSkill project, names of agents.
    pub targets: &'a [String],
    /// For a FastSkill project: load all installed agents.
    pub all_agents: bool,
    /// For a FastSkill project: model name of the agents.
    pub model: Option<&'a str>,
    /// The suite will be run and needs a target.
    pub must_run: bool,
    /// Only judges are called, so API keys of targets are not needed.
    pub judges_only: bool,
    /// Load the combinations of models for the roles of the `[select]` target instead of all targets.
    pub combinations: bool,
    /// File with `[roles]` that replace those of the suite, and the models that they name.
    pub roles: Option<&'a Path>,
}

impl<'a> LoadOptions<'a> {
    /// Creates the options of [`Suite::load`](crate::Suite::load): all targets, as written in the suite.
    pub const fn new() -> LoadOptions<'a> {
        LoadOptions {
            targets: &[],
            all_agents: false,
            model: None,
            must_run: false,
            judges_only: false,
            combinations: false,
            roles: None,
        }
    }

    /// Loads only these targets; all if empty.
    #[must_use]
    pub const fn targets(mut self, targets: &'a [String]) -> LoadOptions<'a> {
        self.targets = targets;
        self
    }

    /// Sets whether all installed agents are the targets of a FastSkill project.
    #[must_use]
    pub const fn all_agents(mut self, all_agents: bool) -> LoadOptions<'a> {
        self.all_agents = all_agents;
        self
    }

    /// Sets the model name of the agents of a FastSkill project.
    #[must_use]
    pub const fn model(mut self, model: Option<&'a str>) -> LoadOptions<'a> {
        self.model = model;
        self
    }

    /// Sets whether the suite will be run and needs a target.
    #[must_use]
    pub const fn must_run(mut self, must_run: bool) -> LoadOptions<'a> {
        self.must_run = must_run;
        self
    }

    /// Sets whether only judges are called, so that API keys of targets are not needed.
    #[must_use]
    pub const fn judges_only(mut self, judges_only: bool) -> LoadOptions<'a> {
        self.judges_only = judges_only;
        self
    }

    /// Sets a file whose `[roles]` replace those of the suite.
    #[must_use]
    pub const fn roles(mut self, roles: Option<&'a Path>) -> LoadOptions<'a> {
        self.roles = roles;
        self
    }

    /// Sets whether the combinations of the `[select]` target are loaded instead of all targets.
    #[must_use]
    pub const fn combinations(mut self, combinations: bool) -> LoadOptions<'a> {
        self.combinations = combinations;
        self
    }
}
