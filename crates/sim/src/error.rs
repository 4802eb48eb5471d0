//! What can be wrong with a profile file.

/// A profile file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key or a value is wrong.
    #[error("line {line}, column {column}: {message}")]
    File {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong, without the position.
        message: String,
    },
    /// The keys of a profile do not fit together.
    #[error("profile `{profile}`: {message}")]
    Profile {
        /// The profile's name.
        profile: String,
        /// What does not fit.
        message: String,
    },
    /// The file holds no profile.
    #[error("there is no [[profile]] in the file")]
    NoProfile,
}

impl Error {
    /// An error of the TOML reader, with its byte position turned into line and column.
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
