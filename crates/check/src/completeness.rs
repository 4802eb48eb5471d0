//! Incomplete evidence: a check that the missing part could change is inconclusive.

use crate::Inconclusive;
use bakeoff_core::Attempt;

/// Verifies that the output is complete.
///
/// # Errors
///
/// A part of the output was dropped.
pub fn require_whole_output(attempt: &Attempt) -> Result<(), Inconclusive> {
    match attempt.dropped_output_bytes {
        0 => Ok(()),
        dropped => Err(truncated("output", &attempt.output, dropped)),
    }
}

pub(crate) fn require_whole_transcript(attempt: &Attempt) -> Result<(), Inconclusive> {
    match attempt.dropped_transcript_bytes {
        0 => Ok(()),
        dropped => {
            Err(truncated("transcript", attempt.transcript.as_deref().unwrap_or_default(), dropped))
        }
    }
}

fn truncated(name: &str, kept: &str, dropped: u64) -> Inconclusive {
    let kept = kept.len() as u64;
    let all = kept.saturating_add(dropped);
    Inconclusive(format!("only the first {kept} of {all} bytes of {name} were kept"))
}

pub(crate) fn require_all_files(attempt: &Attempt) -> Result<(), Inconclusive> {
    let listed = attempt.files.as_ref().map_or(0, |files| files.len() as u64);
    match attempt.unlisted_files {
        0 => Ok(()),
        more => Err(Inconclusive(format!(
            "only {listed} of {} files are listed",
            listed.saturating_add(more)
        ))),
    }
}

pub(crate) fn require_all_tools(attempt: &Attempt) -> Result<(), Inconclusive> {
    match attempt.dropped_tool_uses {
        0 => Ok(()),
        count => Err(Inconclusive(format!("{count} tool calls were not kept"))),
    }
}

pub(crate) fn require_all_arguments(attempt: &Attempt) -> Result<(), Inconclusive> {
    match attempt.dropped_tool_arguments {
        0 => Ok(()),
        count => Err(Inconclusive(format!("the arguments of {count} tool calls were not kept"))),
    }
}
