//! Decoding of streamed responses, whose events have the form of complete responses.

use super::super::body::parse;
use super::super::leftover::{accumulate, indexed, insert_list, is_blank};
use super::super::lenient::{Lenient, Text};
use super::super::{Delta, StreamError};
use super::decode::{Candidate, GenerateContentResponse};
use super::parts::PartCollector;
use super::{UsageMetadata, finish};
use crate::sse::SseEvent;
use bakeoff_core::Response;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Members of a candidate that each event continues; of others, the last value counts.
const INCREMENTAL: [&str; 2] = ["citationMetadata", "logprobsResult"];

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    id: Option<String>,
    model: Option<String>,
    parts: PartCollector,
    finish_reason: Option<String>,
    usage: Option<UsageMetadata>,
    /// Members of the first candidate that are not represented otherwise, such as `groundingMetadata`.
    rest: Map<String, Value>,
    /// Further candidates by index, for requests with `candidateCount`.
    further: BTreeMap<u64, Map<String, Value>>,
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
        self.id = self.id.take().or(chunk.id.and_then(Text::non_empty));
        self.model = self.model.take().or(chunk.model.and_then(Text::non_empty));
        // Counts are cumulative.
        self.usage = chunk.usage.map(|Lenient(usage)| usage).or(self.usage.take());
        self.extra.extend(chunk.extra);
        for raw in chunk.candidates.into_iter().flatten() {
            let json = raw.get().as_bytes();
            let candidate: Candidate<'_> = parse(json)?;
            match candidate.index.unwrap_or_default().0 {
                0 => self.push_candidate(candidate, deltas)?,
                index => accumulate(self.further.entry(index).or_default(), parse(json)?),
            }
        }
        Ok(())
    }

    fn push_candidate(
        &mut self,
        candidate: Candidate<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.parts.push(raw, self.id.as_deref(), deltas)?;
        }
        let reason = candidate.finish_reason.and_then(Text::non_empty);
        self.finish_reason = reason.or(self.finish_reason.take());
        for (name, value) in candidate.extra {
            if INCREMENTAL.contains(&name.as_str()) {
                accumulate(&mut self.rest, Map::from_iter([(name, value)]));
            } else if !is_blank(&value) {
                self.rest.insert(name, value);
            }
        }
        Ok(())
    }

    pub(in crate::wire) fn finish(self) -> Result<Response, StreamError> {
        let reason = self.finish_reason.ok_or(StreamError::Truncated)?;
        let mut kept: Vec<Value> = indexed(0, self.rest).into_iter().collect();
        kept.extend(self.further.into_values().map(Value::Object));
        let mut extra = self.extra;
        insert_list(&mut extra, "candidates", kept);
        Ok(Response {
            id: self.id,
            model: self.model,
            finish: finish(&reason, self.parts.calls > 0),
            content: self.parts.content,
            usage: self.usage.unwrap_or_default().usage(),
            extra,
        })
    }
}
