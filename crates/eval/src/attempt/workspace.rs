//! The folder that a trial works in, and what surrounds it.

use crate::trial::{Asked, Trials};
use bakeoff_agent::{Left, Template, Workspace, is_exhaustion};
use bakeoff_core::{Attempt, ErrorKind, TrialError};
use bakeoff_suite::WorkspaceOrigin;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

impl Trials {
    /// Makes the folder that a trial works in: a copy of the target's own, or of the case's.
    pub(super) async fn workspace(
        &self,
        own: Option<&Path>,
        asked: &Asked<'_>,
    ) -> Result<Workspace, TrialError> {
        let error = |kind, message| TrialError { kind, message };
        let suite = self.suite.path.parent().unwrap_or(Path::new(""));
        let origin = WorkspaceOrigin::of(own, asked.case, suite)
            .map_err(|message| error(ErrorKind::Template, message))?;
        let key = asked.key;
        let name = blake3::hash(format!("{}\0{}\0{}", key.target, key.case, key.trial).as_bytes());
        let folder = self.folder.work().join(&name.to_hex()[..16]);
        let (run, work) = (self.folder.path.clone(), self.folder.work());
        let make = move || {
            std::fs::create_dir_all(&work)?;
            bakeoff_agent::remove(&folder)?;
            // Runs are no part of what they work on.
            let runs = run.parent().unwrap_or(&run).to_owned();
            let template = Template {
                source: origin.source.as_deref(),
                start: origin.start.as_deref(),
                without: &[&runs, &run],
            };
            Workspace::create(&folder, template)
        };
        let made = match tokio::task::spawn_blocking(make).await {
            Ok(made) => made,
            Err(broken) => std::panic::resume_unwind(broken.into_panic()),
        };
        made.map_err(|reason| {
            let code = if is_exhaustion(&reason) { " [EVAL_PARALLEL_EXHAUSTION]" } else { "" };
            error(ErrorKind::Process, format!("cannot make the workspace: {reason}{code}"))
        })
    }

    /// Keeps a program from taking the folders around its workspace for its own: those of the run lie
    /// within the user's.
    pub(super) fn surroundings(&self, folder: &Path) -> BTreeMap<String, OsString> {
        const CEILING: &str = "GIT_CEILING_DIRECTORIES";
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let others = std::env::var_os(CEILING).unwrap_or_default();
        let ceilings =
            std::iter::once(absolute(&self.folder.work())).chain(std::env::split_paths(&others));
        let ceilings = ceilings.filter(|path: &PathBuf| !path.as_os_str().is_empty());
        let mut variables = BTreeMap::from([("PWD".to_owned(), absolute(folder).into_os_string())]);
        variables.extend(std::env::join_paths(ceilings).map(|paths| (CEILING.to_owned(), paths)));
        variables
    }

    /// Adds what was left in the workspace, without secrets.
    pub(super) fn add_files(&self, attempt: &mut Attempt, left: Left) {
        let mut files = left.files;
        for file in files.values_mut() {
            file.text = file.text.take().map(|text| self.redactor.scrub(text));
        }
        attempt.files = Some(files);
        attempt.unlisted_files = left.unlisted;
    }
}

/// Looks at what was left in a workspace.
pub(super) async fn left_in(workspace: Workspace) -> (Left, Workspace) {
    let look = move || (workspace.left(), workspace);
    match tokio::task::spawn_blocking(look).await {
        Ok(found) => found,
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}
