//! Decoding of streamed responses, whose events have the form of complete responses.

use super::super::body::parse;
use super::super::{Delta, StreamError};
use super::decode::GenerateContentResponse;
use super::parts::PartCollector;
use super::{UsageMetadata, finish};
use crate::sse::SseEvent;
use bakeoff_core::Response;
use serde_json::{Map, Value};

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    id: Option<String>,
    model: Option<String>,
    parts: PartCollector,
    finish_reason: Option<String>,
    usage: Option<UsageMetadata>,
    extra: Map<String, Value>,
}

impl StreamAssembler {
    pub(in crate::wire) fn push(
        &mut self,
        event: &SseEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        let chunk: GenerateContentResponse<'_> = parse(event.data.as_bytes())?;
        if let Some(failure) = chunk.failure() {
            return Err(StreamError::Provider(failure));
        }
        self.id = self.id.take().or(chunk.id);
        self.model = self.model.take().or(chunk.model);
        // Counts are cumulative.
        self.usage = chunk.usage.or(self.usage.take());
        self.extra.extend(chunk.extra);
        for candidate in chunk.candidates.into_iter().flatten() {
            if candidate.index.unwrap_or(0) != 0 {
                continue;
            }
            for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.parts.push(raw, self.id.as_deref(), deltas)?;
            }
            self.finish_reason = candidate.finish_reason.or(self.finish_reason.take());
        }
        Ok(())
    }

    pub(in crate::wire) fn finish(self) -> Result<Response, StreamError> {
        let reason = self.finish_reason.ok_or(StreamError::Truncated)?;
        Ok(Response {
            id: self.id,
            model: self.model,
            finish: finish(&reason, self.parts.calls > 0),
            content: self.parts.content,
            usage: self.usage.unwrap_or_default().usage(),
            extra: self.extra,
        })
    }
}
