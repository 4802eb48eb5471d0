//! Checks of what a program left in its workspace.

use crate::incomplete::all_files;
use crate::info::{IGNORE_CASE, KindInfo, ParameterInfo, ParameterType, required};
use crate::parameters::Parameters;
use crate::text::contains;
use crate::{CannotSay, Error, Finding};
use bakeoff_core::Attempt;

/// What must be in the workspace.
#[derive(Debug, Clone)]
pub enum FileCheck {
    /// A file, or a folder with files in it.
    Exists {
        /// From the workspace's top, parts divided by `/`.
        path: String,
    },
    /// A text in a file.
    Contains {
        /// From the workspace's top, parts divided by `/`.
        path: String,
        /// The text.
        value: String,
        /// Upper and lower case are the same.
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
    about: "The value occurs in a file that the program left.",
    parameters: &[
        PATH,
        required("value", ParameterType::Template, "What must occur in it."),
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
        let path = || inner(&parameters.some_text("path")?);
        Ok(Some(match name {
            "file_exists" => FileCheck::Exists { path: path()? },
            "file_contains" => FileCheck::Contains {
                path: path()?,
                value: parameters.some_text("value")?,
                ignore_case: parameters.ignore_case(),
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<Finding, CannotSay> {
        let files = attempt.files.as_ref().ok_or_else(|| {
            CannotSay("nobody has looked at what is left in the workspace".to_owned())
        })?;
        match self {
            FileCheck::Exists { path } => {
                let folder = format!("{path}/");
                let inside = files.range(folder.clone()..).next();
                let holds = files.contains_key(path)
                    || inside.is_some_and(|(name, _)| name.starts_with(&folder));
                if !holds {
                    all_files(attempt)?;
                }
                Ok(Finding::new(
                    holds,
                    match holds {
                        true => format!("there is {path}"),
                        false => format!("there is no {path}"),
                    },
                ))
            }
            FileCheck::Contains { path, value, ignore_case } => {
                let Some(file) = files.get(path) else {
                    all_files(attempt)?;
                    return Ok(Finding::new(false, format!("there is no {path}")));
                };
                let Some(text) = &file.text else {
                    return Err(CannotSay(format!(
                        "the contents of {path} were not kept: it is no text, too large ({} bytes), or as it was before",
                        file.bytes
                    )));
                };
                let found = contains(text, std::slice::from_ref(value), true, *ignore_case);
                Ok(Finding { words: format!("{path}: {}", found.words), ..found })
            }
        }
    }
}

/// The path without `.` parts; one that leads out of the workspace is refused.
fn inner(path: &str) -> Result<String, Error> {
    let wrong = |reason: &str| Err(Error::new("path", format!("`{path}` {reason}")));
    if path.starts_with('/') {
        return wrong("is not within the workspace: it begins with `/`");
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return wrong("is not within the workspace: it has `..`");
    }
    if parts.is_empty() {
        return wrong("names no file");
    }
    Ok(parts.join("/"))
}
