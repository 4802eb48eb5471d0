//! What the shell is told.

/// The exit codes of the whole command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// Done, and the verdict is *passed*.
    Passed,
    /// The thing under test is below its threshold.
    Failed,
    /// Usage or configuration error; nothing was called.
    Usage,
    /// Too many errored trials, or a budget was hit before a verdict.
    Inconclusive,
    /// Internal or I/O error.
    Internal,
    /// Interrupted; partial results are on disk.
    Interrupted,
}

impl ExitCode {
    /// The number the process exits with.
    pub const fn code(self) -> u8 {
        match self {
            ExitCode::Passed => 0,
            ExitCode::Failed => 1,
            ExitCode::Usage => 2,
            ExitCode::Inconclusive => 3,
            ExitCode::Internal => 4,
            ExitCode::Interrupted => 130,
        }
    }
}
