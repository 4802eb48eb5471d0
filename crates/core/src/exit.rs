//! Exit codes.

/// Exit code of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// Finished with the verdict *passed*.
    Passed,
    /// A target is below its threshold.
    Failed,
    /// Usage or configuration error; no call was made.
    Usage,
    /// Too many errored trials, or a budget was reached before a verdict.
    Inconclusive,
    /// Internal or I/O error.
    Internal,
    /// Interrupted; partial results are on disk.
    Interrupted,
}

impl ExitCode {
    /// Returns the exit code as a number.
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
