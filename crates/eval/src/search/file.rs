//! `selection.json`: what a search came to.

use super::setup::Search;
use crate::Error;
use crate::folder::{RunFolder, SELECTION_FILE, write_json};
use bakeoff_core::{RunId, SCHEMA_VERSION};
use bakeoff_select::{Objective, Role, SearchOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of `selection.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectionFile {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The run that made the trials.
    pub run_id: RunId,
    /// The suite.
    pub suite: String,
    /// The target whose roles were filled.
    pub target: String,
    /// The seed.
    pub seed: u64,
    /// What was to be made large.
    pub objective: Objective,
    /// Points of the best that could be given up for money, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheapest_within: Option<f64>,
    /// Roles and their candidates.
    pub roles: Vec<Role>,
    /// Who won: for each role, its model.
    pub best: BTreeMap<String, String>,
    /// All that was found.
    pub selection: SearchOutcome,
}

impl SelectionFile {
    pub(super) fn new(search: &Search, run_id: &RunId, selection: SearchOutcome) -> SelectionFile {
        let Search { run, space, options, .. } = search;
        let roles = space.roles().iter().enumerate();
        let filled = |(role, of): (usize, &Role)| {
            (of.name.clone(), space.candidate(selection.winner, role).to_owned())
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
            best: roles.map(filled).collect(),
            selection,
        }
    }

    pub(super) fn write(&self, folder: &RunFolder) -> Result<(), Error> {
        write_json(&folder.path.join(SELECTION_FILE), self)
    }

    /// Who won, in words.
    pub fn winner(&self) -> &str {
        let SearchOutcome { ranking, winner, .. } = &self.selection;
        ranking.iter().find(|ranked| ranked.combo == *winner).map_or("", |ranked| &ranked.name)
    }

    /// Reads the `selection.json` of a run; `None` when it has none.
    ///
    /// # Errors
    ///
    /// It is not what Bakeoff writes.
    pub fn read(run: &Path) -> Result<Option<SelectionFile>, Error> {
        let path = run.join(SELECTION_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path, source }),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Usage {
            code: None,
            message: format!("{}: not what Bakeoff writes: {error}", path.display()),
            hint: Some("the file is damaged, or another Bakeoff wrote it".to_owned()),
        })
    }
}
