//! Origin of the workspaces of trials.

use super::targets::Target;
use crate::case::{Case, CaseSource, ProblemBuffer};
use crate::case_error::CaseError;
use crate::problem::{Problem, Problems};
use std::path::{Component, Path, PathBuf};

/// Origin of the workspace of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceOrigin {
    /// Folder to copy; the workspace is empty when absent.
    pub source: Option<PathBuf>,
    /// Working directory relative to it.
    pub start: Option<PathBuf>,
}

/// Fields of a case that set the origin of its workspaces.
const WORKSPACE: &str = "workspace";
const START: &str = "workspace_subdir";

impl WorkspaceOrigin {
    /// Returns the origin for trials of a target on a case. Paths in case fields are relative to the folder of
    /// the suite, stay within it, and have precedence over the folder of the target.
    ///
    /// # Errors
    ///
    /// When a case field is not a path within the folder of the suite.
    pub fn of(
        target: Option<&Path>,
        case: &Case,
        folder: &Path,
    ) -> Result<WorkspaceOrigin, CaseError> {
        let own = inner_path(case, WORKSPACE)?.map(|path| folder.join(path));
        let source = own.or_else(|| target.map(Path::to_owned));
        Ok(match (source, inner_path(case, START)?) {
            (Some(source), start) => WorkspaceOrigin { source: Some(source), start },
            (None, Some(start)) => {
                WorkspaceOrigin { source: Some(folder.join(start)), start: None }
            }
            (None, None) => WorkspaceOrigin::default(),
        })
    }

    /// Returns the working directory within the original folder.
    fn folder(&self) -> Option<PathBuf> {
        let source = self.source.as_ref()?;
        Some(self.start.as_ref().map_or(source.clone(), |start| source.join(start)))
    }
}

/// Reads a path from a case field.
fn inner_path(case: &Case, field: &'static str) -> Result<Option<PathBuf>, CaseError> {
    let value = case.fields.get_attr(field).unwrap_or_default();
    if value.is_undefined() || value.is_none() {
        return Ok(None);
    }
    let text = value.as_str().ok_or(CaseError::NotText(field))?.trim();
    let path = Path::new(text);
    let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_inner) {
        return Err(CaseError::OutsidePath { field, path: text.to_owned() });
    }
    Ok((!text.is_empty()).then(|| path.to_owned()))
}

/// Reports cases whose workspace does not exist.
pub(super) fn check(
    cases: &CaseSource,
    fields: &std::collections::BTreeSet<String>,
    targets: &[Target],
    folder: &Path,
    problems: &mut Problems<'_>,
) {
    let own: Vec<Option<&Path>> = targets.iter().filter_map(Target::workspace).collect();
    if own.is_empty() || ![WORKSPACE, START].iter().any(|field| fields.contains(*field)) {
        return;
    }
    let mut found = ProblemBuffer::default();
    let absolute = std::path::absolute(folder.join(".")).unwrap_or_default();
    // The survey has reported unreadable cases.
    for case in cases.iter().filter_map(Result::ok) {
        let message = own.iter().find_map(|own| {
            match WorkspaceOrigin::of(*own, &case, folder).map(|origin| origin.folder()) {
                Ok(Some(path)) if !path.is_dir() => {
                    let shown = path.strip_prefix(&absolute).or(path.strip_prefix(folder));
                    let shown = shown.unwrap_or(&path).display();
                    Some(format!("workspace of case `{}` not found: {shown}", case.id))
                }
                Ok(_) => None,
                Err(error) => Some(format!("{error} (case `{}`)", case.id)),
            }
        });
        if let Some(message) = message {
            let hint = "`workspace` and `workspace_subdir` are relative to the suite file";
            found.push(Problem {
                code: None,
                message,
                path: cases.path().to_owned(),
                position: None,
                hint: Some(hint.to_owned()),
            });
        }
    }
    problems.extend(found.finish());
}
