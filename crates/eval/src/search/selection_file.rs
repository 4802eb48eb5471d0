//! `selection.json`: the result of a search.

use super::routes::routes;
use super::search_run::SearchRun;
use crate::Error;
use crate::folder::{RunFolder, SELECTION_FILE, write_json};
use bakeoff_core::{RunId, SCHEMA_VERSION};
use bakeoff_journal::write_output;
use bakeoff_select::{Objective, Role, SearchOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Table;

/// Contents of `selection.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectionFile {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: RunId,
    /// Name of the suite.
    pub suite: String,
    /// Target with the roles.
    pub target: String,
    /// Seed.
    pub seed: u64,
    /// Objective of the search.
    pub objective: Objective,
    /// Points below the best score that a cheaper combination may have, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheapest_within: Option<f64>,
    /// Roles and their candidates.
    pub roles: Vec<Role>,
    /// The winner: the model of each role.
    pub best: BTreeMap<String, String>,
    /// The complete result.
    pub selection: SearchOutcome,
}

impl SelectionFile {
    pub(super) fn new(
        search: &SearchRun,
        run_id: &RunId,
        selection: SearchOutcome,
    ) -> SelectionFile {
        let SearchRun { run, space, options, .. } = search;
        let roles = space.roles().iter().enumerate();
        let assigned = |(index, role): (usize, &Role)| {
            (role.name.clone(), space.candidate(selection.winner, index).to_owned())
        };
        SelectionFile {
            schema_version: SCHEMA_VERSION,
            run_id: run_id.clone(),
            suite: run.suite.name.clone(),
            target: run.suite.select.as_ref().map_or(String::new(), |plan| plan.target.clone()),
            seed: run.config.seed,
            objective: options.objective,
            cheapest_within: options.within,
            roles: space.roles().to_vec(),
            best: roles.map(assigned).collect(),
            selection,
        }
    }

    pub(super) fn write(&self, folder: &RunFolder) -> Result<(), Error> {
        write_json(&folder.path.join(SELECTION_FILE), self)
    }

    /// Returns the name of the winning combination.
    pub fn winner(&self) -> &str {
        let SearchOutcome { ranking, winner, .. } = &self.selection;
        ranking.iter().find(|ranked| ranked.combo == *winner).map_or("", |ranked| &ranked.name)
    }

    /// Reads the `selection.json` of a run; `None` when it has none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is invalid.
    pub fn read(run: &Path) -> Result<Option<SelectionFile>, Error> {
        let path = run.join(SELECTION_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path, source }),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let hint = "the file is damaged, or another version of Bakeoff wrote it";
            let message = format!("{}: invalid selection file: {error}", path.display());
            Error::usage(message, Some(hint.to_owned()))
        })
    }

    /// Writes the winner as TOML: `[roles]`, and the tables of `[models]` and `[sim]` that it names, so
    /// that the file can be used on its own.
    ///
    /// # Errors
    ///
    /// When the suite cannot be read or the file cannot be written.
    pub fn apply(&self, suite: &Path, to: &Path) -> Result<(), Error> {
        let text = std::fs::read_to_string(suite)
            .map_err(|source| Error::Read { path: suite.to_owned(), source })?;
        // The suite has been loaded, so it is valid TOML unless it has changed since.
        let suite: Table = toml::from_str(&text).unwrap_or_default();
        let routes = routes(self, &suite);
        Ok(write_output(to, |writer| writer.write_all(routes.as_bytes()))?)
    }
}
