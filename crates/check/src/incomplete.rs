//! Evidence of which a part is missing. What could change with it must not be said.

use crate::CannotSay;
use bakeoff_core::Attempt;

/// That a part of the answer is missing, if it is. For whoever judges all of it.
///
/// # Errors
///
/// A part is missing.
pub fn whole_output(attempt: &Attempt) -> Result<(), CannotSay> {
    match attempt.dropped_output_bytes {
        0 => Ok(()),
        dropped => Err(bytes("output", &attempt.output, dropped)),
    }
}

pub(crate) fn whole_transcript(attempt: &Attempt) -> Result<(), CannotSay> {
    match attempt.dropped_transcript_bytes {
        0 => Ok(()),
        dropped => {
            Err(bytes("transcript", attempt.transcript.as_deref().unwrap_or_default(), dropped))
        }
    }
}

fn bytes(what: &str, kept: &str, dropped: u64) -> CannotSay {
    let kept = kept.len() as u64;
    let all = kept.saturating_add(dropped);
    CannotSay(format!("of {all} bytes of {what} only the first {kept} were kept"))
}

pub(crate) fn all_files(attempt: &Attempt) -> Result<(), CannotSay> {
    let listed = attempt.files.as_ref().map_or(0, |files| files.len() as u64);
    match attempt.unlisted_files {
        0 => Ok(()),
        more => Err(CannotSay(format!(
            "of {} files only {listed} are listed",
            listed.saturating_add(more)
        ))),
    }
}

pub(crate) fn all_tools(attempt: &Attempt) -> Result<(), CannotSay> {
    match attempt.dropped_tool_uses {
        0 => Ok(()),
        count => Err(CannotSay(format!("{count} uses of tools were not kept"))),
    }
}

pub(crate) fn all_arguments(attempt: &Attempt) -> Result<(), CannotSay> {
    match attempt.dropped_tool_arguments {
        0 => Ok(()),
        count => Err(CannotSay(format!("what {count} of the tools were given was not kept"))),
    }
}
