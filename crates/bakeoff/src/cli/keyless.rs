//! Validation without API keys: environment variables that only calls need may be missing.

use crate::printer::Printer;
use crate::settings;
use bakeoff_llm::ModelError;
use bakeoff_suite::{LoadOptions, Suite, SuiteError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

/// Value of a missing variable.
const PLACEHOLDER: &str = "not-set";

/// Environment with placeholders for missing variables. Nothing may be sent with it.
#[derive(Debug, Default)]
pub(crate) struct KeylessEnvironment {
    /// Names of the missing variables.
    missing: BTreeSet<String>,
}

impl KeylessEnvironment {
    /// Loads a suite. Other problems than missing variables are errors.
    pub(crate) fn load(
        &mut self,
        path: &Path,
        options: LoadOptions<'_>,
    ) -> Result<Suite, SuiteError> {
        // A model reports one missing variable at a time.
        loop {
            let requested = RefCell::new(BTreeSet::new());
            let lookup = |name: &str| {
                requested.borrow_mut().insert(name.to_owned());
                self.variable(name)
            };
            let error = match Suite::load_with(path, options, &lookup) {
                Ok(suite) => return Ok(suite),
                Err(error) => error,
            };
            let problems = error.problems();
            let reports = |name: &String| {
                let message = ModelError::MissingKey(name.clone()).to_string();
                problems.iter().filter(|problem| problem.message == message).count()
            };
            let mut missing = requested.into_inner();
            missing.retain(|name| reports(name) > 0);
            if missing.iter().map(reports).sum::<usize>() < problems.len() {
                return Err(error);
            }
            self.missing.extend(missing);
        }
    }

    /// Returns a variable, or the placeholder of a missing one.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match self.missing.contains(name) {
            true => Some(PLACEHOLDER.to_owned()),
            false => settings::variable(name),
        }
    }

    /// Uses a placeholder for this variable.
    pub(crate) fn add_missing(&mut self, name: String) {
        self.missing.insert(name);
    }

    /// Warns of the missing variables.
    pub(crate) fn warn(&self, printer: &Printer) {
        for name in &self.missing {
            printer.warning(format!("environment variable {name} is not set; calls need it"));
        }
    }
}
