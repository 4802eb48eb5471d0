//! Workspaces of trials.

use super::TrialInput;
use crate::context::TrialContext;
use bakeoff_agent::{Workspace, WorkspaceFiles, WorkspaceTemplate, is_exhaustion};
use bakeoff_core::{Attempt, ErrorKind, TrialError};
use bakeoff_suite::WorkspaceOrigin;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Creates the workspace of a trial: a copy of the target's or the case's folder.
pub(super) async fn create_workspace(
    context: &TrialContext,
    target_folder: Option<&Path>,
    input: &TrialInput<'_>,
) -> Result<Workspace, TrialError> {
    let error = |kind, message| TrialError { kind, message };
    let suite_folder = context.suite.path.parent().unwrap_or(Path::new(""));
    let origin = WorkspaceOrigin::of(target_folder, input.case, suite_folder)
        .map_err(|reason| error(ErrorKind::Template, reason.to_string()))?;
    let key = input.key;
    let (run, work) = (context.folder.path.clone(), Arc::clone(&context.work));
    let folder = work.trial(key);
    let create = move || {
        work.create()?;
        bakeoff_agent::remove_folder(&folder)?;
        // The copied folder may contain the folders of runs and workspaces, which are not copied.
        let runs = run.parent().unwrap_or(&run).to_owned();
        let excluded: [&Path; 3] = [&runs, &run, work.path()];
        let mut template = WorkspaceTemplate::default().excluded(&excluded);
        template.source = origin.source.as_deref();
        template.start = origin.start.as_deref();
        Workspace::create(&folder, template)
    };
    let created = match tokio::task::spawn_blocking(create).await {
        Ok(created) => created,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    };
    created.map_err(|reason| {
        let code = if is_exhaustion(&reason) { " [EVAL_PARALLEL_EXHAUSTION]" } else { "" };
        error(ErrorKind::Process, format!("cannot create the workspace: {reason}{code}"))
    })
}

/// Returns the environment variables of programs in a workspace, in addition to those of this process: those of the
/// file `.env`, and those that keep Git from treating the folders around a workspace as its repository, because the
/// user may choose a folder for workspaces that lies within one.
pub(super) fn workspace_environment(
    context: &TrialContext,
    folder: &Path,
) -> BTreeMap<String, OsString> {
    const CEILING: &str = "GIT_CEILING_DIRECTORIES";
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let inherited = std::env::var_os(CEILING).unwrap_or_default();
    let ceilings =
        std::iter::once(absolute(context.work.path())).chain(std::env::split_paths(&inherited));
    let ceilings = ceilings.filter(|path: &PathBuf| !path.as_os_str().is_empty());
    let mut variables: BTreeMap<_, _> = context.suite.env_file.variables().collect();
    variables.insert("PWD".to_owned(), absolute(folder).into_os_string());
    variables.extend(std::env::join_paths(ceilings).map(|paths| (CEILING.to_owned(), paths)));
    variables
}

/// Reads the files that were left in a workspace.
pub(super) async fn read_files(workspace: Workspace) -> (WorkspaceFiles, Workspace) {
    let read = move || (workspace.files(), workspace);
    match tokio::task::spawn_blocking(read).await {
        Ok(found) => found,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Adds the files that were left in the workspace to an attempt, without secrets.
pub(super) fn add_files(context: &TrialContext, attempt: &mut Attempt, left: WorkspaceFiles) {
    let mut files = left.files;
    for file in files.values_mut() {
        file.text = file.text.take().map(|text| context.redactor.scrub(text));
    }
    attempt.files = Some(files);
    attempt.unlisted_files = left.unlisted;
}
