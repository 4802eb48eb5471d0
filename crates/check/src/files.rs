//! Checks of the files that a program left in its workspace.

use crate::completeness::require_all_files;
use crate::info::{IGNORE_CASE, KindInfo, ParameterInfo, ParameterType, required};
use crate::parameters::Parameters;
use crate::text::contains;
use crate::{CheckFinding, Error, Inconclusive};
use bakeoff_core::Attempt;

/// A condition on the workspace.
#[derive(Debug, Clone)]
pub enum FileCheck {
    /// A file exists, or a folder with files in it.
    Exists {
        /// Path relative to the workspace, separated by `/`.
        path: String,
    },
    /// A file contains a text.
    Contains {
        /// Path relative to the workspace, separated by `/`.
        path: String,
        /// The text.
        value: String,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
}

const PATH: ParameterInfo = required(
    "path",
    ParameterType::Template,
    "A path within the workspace, such as `src/main.py`.",
);

pub(crate) const FILE_EXISTS: KindInfo = KindInfo {
    name: "file_exists",
    about: "The program left this file, or files in this folder, in its workspace.",
    parameters: &[PATH],
    extracts: false,
    for_programs: true,
    example: "kind = \"file_exists\"\npath = \"answer.txt\"",
};

pub(crate) const FILE_CONTAINS: KindInfo = KindInfo {
    name: "file_contains",
    about: "The value occurs in a file that the program left in its workspace.",
    parameters: &[
        PATH,
        required("value", ParameterType::Template, "Text that must occur in the file."),
        IGNORE_CASE,
    ],
    extracts: false,
    for_programs: true,
    example: "kind = \"file_contains\"\npath = \"answer.txt\"\nvalue = \"{{ expected }}\"",
};

impl FileCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<FileCheck>, Error> {
        let path = || normalize(&parameters.non_empty_text("path")?);
        Ok(Some(match name {
            "file_exists" => FileCheck::Exists { path: path()? },
            "file_contains" => FileCheck::Contains {
                path: path()?,
                value: parameters.non_empty_text("value")?,
                ignore_case: parameters.ignore_case(),
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<CheckFinding, Inconclusive> {
        let files = attempt
            .files
            .as_ref()
            .ok_or_else(|| Inconclusive("files of the workspace unknown".to_owned()))?;
        match self {
            FileCheck::Exists { path } => {
                let folder = format!("{path}/");
                let inside = files.range(folder.clone()..).next();
                let holds = files.contains_key(path)
                    || inside.is_some_and(|(name, _)| name.starts_with(&folder));
                if !holds {
                    require_all_files(attempt)?;
                }
                Ok(CheckFinding::new(
                    holds,
                    match holds {
                        true => format!("{path} exists"),
                        false => format!("{path} does not exist"),
                    },
                ))
            }
            FileCheck::Contains { path, value, ignore_case } => {
                let Some(file) = files.get(path) else {
                    require_all_files(attempt)?;
                    return Ok(CheckFinding::new(false, format!("{path} does not exist")));
                };
                let Some(text) = &file.text else {
                    return Err(Inconclusive(format!(
                        "the contents of {path} were not kept: the file is not text, too large ({} bytes), or unchanged",
                        file.bytes
                    )));
                };
                let found = contains(text, std::slice::from_ref(value), true, *ignore_case);
                Ok(CheckFinding { message: format!("{path}: {}", found.message), ..found })
            }
        }
    }
}

/// Removes `.` components and rejects a path that leaves the workspace.
fn normalize(path: &str) -> Result<String, Error> {
    let invalid = |reason: &str| Err(Error::new("path", format!("`{path}` {reason}")));
    if path.starts_with('/') {
        return invalid("is not within the workspace: it starts with `/`");
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return invalid("is not within the workspace: it contains `..`");
    }
    if parts.is_empty() {
        return invalid("names no file");
    }
    Ok(parts.join("/"))
}
