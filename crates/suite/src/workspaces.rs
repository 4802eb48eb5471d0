//! What trials that have a workspace start from.

use super::targets::Target;
use crate::case::{Case, CaseSource, FewProblems};
use crate::problem::{Problem, Problems};
use std::path::{Component, Path, PathBuf};

/// What a trial's workspace is a copy of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceOrigin {
    /// The folder; an empty one when absent.
    pub source: Option<PathBuf>,
    /// Where in it the program starts.
    pub start: Option<PathBuf>,
}

/// Fields of a case that say what its trials start from.
const WORKSPACE: &str = "workspace";
const START: &str = "workspace_subdir";

impl WorkspaceOrigin {
    /// What trials of a target at a case start from; the error is for people. Fields of the case are
    /// relative to the suite's folder, do not lead out of it, and win over the target's own.
    pub fn of(
        target: Option<&Path>,
        case: &Case,
        folder: &Path,
    ) -> Result<WorkspaceOrigin, String> {
        let own = inner(case, WORKSPACE)?.map(|path| folder.join(path));
        let source = own.or_else(|| target.map(Path::to_owned));
        Ok(match (source, inner(case, START)?) {
            (Some(source), start) => WorkspaceOrigin { source: Some(source), start },
            (None, Some(start)) => {
                WorkspaceOrigin { source: Some(folder.join(start)), start: None }
            }
            (None, None) => WorkspaceOrigin::default(),
        })
    }

    /// Where the program starts, in the original.
    fn folder(&self) -> Option<PathBuf> {
        let source = self.source.as_ref()?;
        Some(self.start.as_ref().map_or(source.clone(), |start| source.join(start)))
    }
}

/// A path that a case names, if it names one.
fn inner(case: &Case, field: &str) -> Result<Option<PathBuf>, String> {
    let value = case.fields.get_attr(field).unwrap_or_default();
    if value.is_undefined() || value.is_none() {
        return Ok(None);
    }
    let text = value.as_str().ok_or_else(|| format!("a case's `{field}` must be text"))?.trim();
    let path = Path::new(text);
    let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_inner) {
        return Err(format!(
            "a case's `{field}` must not lead out of the suite's folder: {text:?}"
        ));
    }
    Ok((!text.is_empty()).then(|| path.to_owned()))
}

/// Finds cases whose workspace is not there.
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
    let mut found = FewProblems::default();
    let absolute = std::path::absolute(folder.join(".")).unwrap_or_default();
    // Cases that cannot be read have been reported already.
    for case in cases.iter().filter_map(Result::ok) {
        let wrong = own.iter().find_map(|own| {
            match WorkspaceOrigin::of(*own, &case, folder).map(|origin| origin.folder()) {
                Ok(Some(path)) if !path.is_dir() => {
                    let shown = path.strip_prefix(&absolute).or(path.strip_prefix(folder));
                    let shown = shown.unwrap_or(&path).display();
                    Some(format!("the workspace of case `{}` is not there: {shown}", case.id))
                }
                Ok(_) => None,
                Err(message) => Some(format!("{message} (case `{}`)", case.id)),
            }
        });
        if let Some(message) = wrong {
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
