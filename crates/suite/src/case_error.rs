//! Errors of a suite that depend on the case.

use crate::template::RenderError;

/// Reason why a part of a suite cannot be used for a case. The message is meant for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// A template cannot be rendered with the fields of the case.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A check has invalid parameters after its templates are rendered.
    #[error(transparent)]
    Parameters(#[from] bakeoff_check::Error),
    /// Checks of the case itself are invalid.
    #[error("{}", .0.join("; "))]
    Checks(Vec<String>),
    /// A field that must be a string has another type.
    #[error("case `{0}` must be a string")]
    NotText(&'static str),
    /// A field names a path outside the folder of the suite.
    #[error("case `{field}` must stay within the folder of the suite: {path:?}")]
    OutsidePath {
        /// Name of the field.
        field: &'static str,
        /// The path.
        path: String,
    },
}
