//! Decoding of complete responses.

use super::super::DecodeError;
use super::super::body::{open_struct, parse};
use super::super::leftover::{indexed, insert_list, leftovers};
use super::super::lenient::{Count, Lenient, Text};
use super::parts::PartCollector;
use super::{UsageMetadata, finish};
use crate::failure::Failure;
use crate::wire::Wire;
use bakeoff_core::{ErrorKind, FinishReason, Response};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

open_struct! {
    /// A complete response, or one event of a streamed one.
    GenerateContentResponse<'a> {
        candidates: Vec<&'a RawValue> = "candidates",
        prompt_feedback: Lenient<PromptFeedback> = "promptFeedback",
        usage: Lenient<UsageMetadata> = "usageMetadata",
        model: Text<'a> = "modelVersion",
        id: Text<'a> = "responseId",
        error: Value = "error",
    }
    ignored: []
}

open_struct! {
    Candidate<'a> {
        content: CandidateContent<'a> = "content",
        finish_reason: Text<'a> = "finishReason",
        index: Count = "index",
    }
    ignored: []
}

#[derive(Deserialize)]
pub(super) struct CandidateContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

impl GenerateContentResponse<'_> {
    /// Returns the failure if this is an error or a blocked prompt.
    pub(super) fn failure(&self) -> Option<Failure> {
        if let Some(error) = self.error.as_ref().filter(|error| !error.is_null()) {
            return Some(Failure::from_error_object(Wire::Gemini, error));
        }
        let Lenient(feedback) = self.prompt_feedback.as_ref()?;
        let reason = feedback.block_reason.clone()?;
        let message = feedback.block_reason_message.as_ref().unwrap_or(&reason);
        let message = format!("prompt blocked: {message}");
        Some(Failure { code: Some(reason), ..Failure::local(ErrorKind::ContentFilter, message) })
    }
}

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    let parsed: GenerateContentResponse<'_> = parse(body)?;
    if let Some(failure) = parsed.failure() {
        return Err(DecodeError::Provider(failure));
    }
    let missing = |what: &str| DecodeError::malformed(format!("{what} is missing"), body);
    let candidates = parsed.candidates.ok_or_else(|| missing("`candidates`"))?;
    let (first, further) = candidates.split_first().ok_or_else(|| missing("`candidates[0]`"))?;
    let candidate: Candidate<'_> = parse(first.get().as_bytes())?;
    let id = parsed.id.and_then(Text::non_empty);
    let mut parts = PartCollector::default();
    for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        parts.push(raw, id.as_deref(), &mut Vec::new())?;
    }
    let rest = indexed(0, leftovers(candidate.extra, &[]));
    let mut kept: Vec<Value> = rest.into_iter().collect();
    for raw in further {
        kept.push(parse(raw.get().as_bytes())?);
    }
    let mut extra = parsed.extra;
    insert_list(&mut extra, "candidates", kept);
    Ok(Response {
        id,
        model: parsed.model.and_then(Text::non_empty),
        finish: match candidate.finish_reason.and_then(Text::non_empty) {
            Some(reason) => finish(&reason, parts.calls > 0),
            None => FinishReason::Other("missing".to_owned()),
        },
        content: parts.content,
        usage: parsed.usage.unwrap_or_default().0.usage(),
        extra,
    })
}
