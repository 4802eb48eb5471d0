//! `selection.json`: what a search came to.

use crate::Error;
use crate::folder::{RunFolder, write_json};
use crate::run::Run;
use bakeoff_core::{RunId, SCHEMA_VERSION};
use bakeoff_select::{Role, Selection, Space};
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
    /// The seed.
    pub seed: u64,
    /// Roles and their candidates.
    pub roles: Vec<Role>,
    /// Who won: for each role, its model.
    pub best: BTreeMap<String, String>,
    /// All that was found.
    pub selection: Selection,
}

impl SelectionFile {
    pub(super) fn new(
        run: &Run,
        run_id: &RunId,
        space: &Space,
        selection: &Selection,
    ) -> SelectionFile {
        let roles = space.roles().iter().enumerate();
        let filled = |(role, of): (usize, &Role)| {
            (of.name.clone(), space.candidate(selection.winner, role).to_owned())
        };
        SelectionFile {
            schema_version: SCHEMA_VERSION,
            run_id: run_id.clone(),
            suite: run.suite.name.clone(),
            seed: run.config.seed,
            roles: space.roles().to_vec(),
            best: roles.map(filled).collect(),
            selection: selection.clone(),
        }
    }

    pub(super) fn write(&self, folder: &RunFolder) -> Result<(), Error> {
        write_json(&folder.path.join("selection.json"), self)
    }

    /// Reads the `selection.json` of a run; `None` when it has none.
    ///
    /// # Errors
    ///
    /// It is not what Bakeoff writes.
    pub fn read(run: &Path) -> Result<Option<SelectionFile>, Error> {
        let path = run.join("selection.json");
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
