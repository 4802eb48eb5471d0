//! Streamed responses.

use super::{StreamError, Wire, anthropic, gemini, openai_chat, openai_responses};
use crate::sse::{SseEvent, SseParser};
use bakeoff_core::Response;

/// Increment of a streamed response.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// Start of a tool call.
    ToolCallStart {
        /// Index among the tool calls of the response, from 0.
        index: usize,
        /// Id of the tool call.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// Arguments of a tool call, as JSON text.
    ToolCallArguments {
        /// Index among the tool calls of the response, from 0.
        index: usize,
        /// Fragment of the JSON.
        json: String,
    },
}

/// Decoder of a streamed response that accepts bytes as they arrive.
#[derive(Debug)]
pub struct StreamDecoder {
    sse: SseParser,
    events: Vec<SseEvent>,
    assembler: FormatAssembler,
    error: Option<StreamError>,
}

/// Assembler of one wire format.
#[derive(Debug)]
enum FormatAssembler {
    OpenAiChat(Box<openai_chat::StreamAssembler>),
    OpenAiResponses(Box<openai_responses::StreamAssembler>),
    Anthropic(Box<anthropic::StreamAssembler>),
    Gemini(Box<gemini::StreamAssembler>),
}

impl StreamDecoder {
    pub(super) fn new(wire: Wire) -> Self {
        let assembler = match wire {
            Wire::OpenAiChat => FormatAssembler::OpenAiChat(Box::default()),
            Wire::OpenAiResponses => FormatAssembler::OpenAiResponses(Box::default()),
            Wire::Anthropic => FormatAssembler::Anthropic(Box::default()),
            Wire::Gemini => FormatAssembler::Gemini(Box::default()),
        };
        StreamDecoder { sse: SseParser::new(), events: Vec::new(), assembler, error: None }
    }

    /// Decodes the next bytes and returns the new deltas.
    ///
    /// # Errors
    ///
    /// Every call after the first error returns the same error, and so does [`finish`](Self::finish). Deltas
    /// that precede the error in the same bytes are lost.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, StreamError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let mut deltas = Vec::new();
        self.read(bytes, &mut deltas).inspect_err(|error| self.error = Some(error.clone()))?;
        Ok(deltas)
    }

    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<(), StreamError> {
        let parsed = self.sse.feed(bytes, &mut self.events);
        for event in self.events.drain(..) {
            match &mut self.assembler {
                FormatAssembler::OpenAiChat(assembler) => assembler.push(&event, deltas)?,
                FormatAssembler::OpenAiResponses(assembler) => assembler.push(&event, deltas)?,
                FormatAssembler::Anthropic(assembler) => assembler.push(&event, deltas)?,
                FormatAssembler::Gemini(assembler) => assembler.push(&event, deltas)?,
            }
        }
        Ok(parsed?)
    }

    /// Whether the terminal event of the format was decoded. Gemini has none; its streams end with the
    /// connection.
    pub fn is_complete(&self) -> bool {
        match &self.assembler {
            FormatAssembler::OpenAiChat(assembler) => assembler.is_complete(),
            FormatAssembler::OpenAiResponses(assembler) => assembler.is_complete(),
            FormatAssembler::Anthropic(assembler) => assembler.is_complete(),
            FormatAssembler::Gemini(_) => false,
        }
    }

    /// Returns the complete response at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`StreamError::Truncated`] when the stream ended before the response was complete.
    pub fn finish(self) -> Result<Response, StreamError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.assembler {
            FormatAssembler::OpenAiChat(assembler) => assembler.finish(),
            FormatAssembler::OpenAiResponses(assembler) => assembler.finish(),
            FormatAssembler::Anthropic(assembler) => assembler.finish(),
            FormatAssembler::Gemini(assembler) => assembler.finish(),
        }
    }
}
