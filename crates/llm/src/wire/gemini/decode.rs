//! Decoding of complete responses.

use super::super::DecodeError;
use super::super::body::parse;
use super::parts::PartCollector;
use super::{UsageMetadata, finish};
use crate::failure::Failure;
use crate::wire::Wire;
use crate::wire::body::open_struct;
use bakeoff_core::{ErrorKind, FinishReason, Response};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

open_struct! {
    /// A complete response, or one event of a streamed one.
    GenerateContentResponse<'a> {
        candidates: Vec<Candidate<'a>> = "candidates",
        prompt_feedback: PromptFeedback = "promptFeedback",
        usage: UsageMetadata = "usageMetadata",
        model: String = "modelVersion",
        id: String = "responseId",
        error: Value = "error",
    }
    ignored: []
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<CandidateContent<'a>>,
    pub(super) finish_reason: Option<String>,
    pub(super) index: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct CandidateContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
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
        let feedback = self.prompt_feedback.as_ref()?;
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
    let candidate = candidates.into_iter().next().ok_or_else(|| missing("`candidates[0]`"))?;
    let mut parts = PartCollector::default();
    for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        parts.push(raw, parsed.id.as_deref(), &mut Vec::new())?;
    }
    Ok(Response {
        id: parsed.id,
        model: parsed.model,
        finish: match candidate.finish_reason {
            Some(reason) => finish(&reason, parts.calls > 0),
            None => FinishReason::Other("missing".to_owned()),
        },
        content: parts.content,
        usage: parsed.usage.unwrap_or_default().usage(),
        extra: parsed.extra,
    })
}
