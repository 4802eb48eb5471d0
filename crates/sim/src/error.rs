//! Errors of profile files.

/// Error in a profile file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid key or value.
    #[error("line {line}, column {column}: {message}")]
    File {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Error message without the position.
        message: String,
    },
    /// Inconsistent keys of a profile.
    #[error("profile `{profile}`: {message}")]
    Profile {
        /// The profile's name.
        profile: String,
        /// Description of the inconsistency.
        message: String,
    },
    /// The file contains no profile.
    #[error("no `[[profile]]` in the file")]
    NoProfile,
}

impl Error {
    /// Converts an error of the TOML parser, turning its byte position into line and column.
    pub(crate) fn from_toml(error: &toml::de::Error, text: &str) -> Error {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Error::File {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: error.message().trim().to_owned(),
        }
    }
}
