//! Answers in pieces, each written like a whole answer.

use super::super::body::parse;
use super::super::{Delta, StreamError};
use super::decode::Answer;
use super::parts::Parts;
use super::{UsageMetadata, finish};
use crate::sse::SseEvent;
use bakeoff_core::Response;
use serde_json::{Map, Value};

/// The answer so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct Stream {
    id: Option<String>,
    model: Option<String>,
    parts: Parts,
    finish_reason: Option<String>,
    usage: Option<UsageMetadata>,
    extra: Map<String, Value>,
}

impl Stream {
    pub(in crate::wire) fn event(
        &mut self,
        event: &SseEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        let piece: Answer<'_> = parse(event.data.as_bytes())?;
        if let Some(failure) = piece.failure() {
            return Err(StreamError::Provider(failure));
        }
        self.id = self.id.take().or(piece.id);
        self.model = self.model.take().or(piece.model);
        // Counts are totals so far.
        self.usage = piece.usage.or(self.usage.take());
        self.extra.extend(piece.extra);
        for candidate in piece.candidates.into_iter().flatten() {
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
