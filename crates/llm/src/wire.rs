//! Wire formats: encoding of requests and decoding of responses.
//!
//! Four formats are mapped to and from the types of `bakeoff-core`. HTTP is out of scope: the functions take
//! and return bytes.

mod anthropic;
mod body;
mod error;
mod gemini;
mod leftover;
mod lenient;
mod media;
mod openai_chat;
mod openai_responses;
mod setting;
mod stream;

pub use error::{DecodeError, KeyError, StreamError};
pub use setting::{Setting, UnsupportedSetting};
pub use stream::{Delta, StreamDecoder};

use bakeoff_core::{Request, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};

/// Wire format of a provider. [`Wire::unsupported_settings`] returns the settings of a request that a format
/// has no field for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI Chat Completions, which most other providers support too.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
}

/// Field of Chat Completions that carries [`Request::max_tokens`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TokenLimitField {
    /// `max_tokens`, the only field that many compatible servers know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`. OpenAI deprecates `max_tokens`, and its reasoning models reject it.
    MaxCompletionTokens,
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Wire::OpenAiChat => "OpenAI Chat Completions",
            Wire::OpenAiResponses => "OpenAI Responses",
            Wire::Anthropic => "Anthropic Messages",
            Wire::Gemini => "Gemini",
        })
    }
}

impl Wire {
    /// All formats.
    pub const ALL: [Wire; 4] =
        [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini];

    /// Returns the path of a request relative to the base URL.
    pub fn path(self, request: &Request) -> String {
        match self {
            Wire::OpenAiChat => "/chat/completions".to_owned(),
            Wire::OpenAiResponses => "/responses".to_owned(),
            Wire::Anthropic => "/messages".to_owned(),
            Wire::Gemini => gemini::path(request),
        }
    }

    /// Returns the header that carries the API key.
    pub(crate) fn key_header(self) -> HeaderName {
        match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => header::AUTHORIZATION,
            Wire::Anthropic => HeaderName::from_static("x-api-key"),
            Wire::Gemini => HeaderName::from_static("x-goog-api-key"),
        }
    }

    /// Returns the headers that carry the API key, marked as sensitive.
    ///
    /// # Errors
    ///
    /// When the key contains bytes that a header must not have, such as a line feed.
    pub fn auth_headers(self, key: &str) -> Result<Vec<(HeaderName, HeaderValue)>, KeyError> {
        let value = match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| KeyError)
            }
            Wire::Anthropic | Wire::Gemini => HeaderValue::from_str(key).map_err(|_| KeyError),
        };
        let mut value = value?;
        value.set_sensitive(true);
        Ok(vec![(self.key_header(), value)])
    }

    /// Returns the headers of every request; none is secret.
    pub fn headers(self) -> Vec<(HeaderName, HeaderValue)> {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Wire::Anthropic => vec![json, anthropic::VERSION],
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Gemini => vec![json],
        }
    }

    /// Encodes a request as a JSON body.
    ///
    /// [`Request::extra`] is merged in last: objects are merged at any depth, and other values replace those
    /// of Bakeoff. Unsupported settings are left out.
    pub fn encode(self, request: &Request) -> Bytes {
        self.encode_with(request, TokenLimitField::default())
    }

    /// Encodes a request like [`encode`](Self::encode). `limit_field` applies to Chat Completions only.
    pub fn encode_with(self, request: &Request, limit_field: TokenLimitField) -> Bytes {
        let json = match self {
            Wire::OpenAiChat => openai_chat::encode(request, limit_field),
            Wire::OpenAiResponses => openai_responses::encode(request),
            Wire::Anthropic => anthropic::encode(request),
            Wire::Gemini => gemini::encode(request),
        };
        Bytes::from(json)
    }

    /// Decodes a complete response body.
    ///
    /// # Errors
    ///
    /// When the body does not have this format, or contains an error object.
    pub fn decode(self, body: &[u8]) -> Result<Response, DecodeError> {
        match self {
            Wire::OpenAiChat => openai_chat::decode(body),
            Wire::OpenAiResponses => openai_responses::decode(body),
            Wire::Anthropic => anthropic::decode(body),
            Wire::Gemini => gemini::decode(body),
        }
    }

    /// Creates a decoder for a streamed response.
    pub fn stream(self) -> StreamDecoder {
        StreamDecoder::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_sent_in_the_header_of_the_provider_and_marked_sensitive() {
        let expected = [
            ("authorization", "Bearer k3y"),
            ("authorization", "Bearer k3y"),
            ("x-api-key", "k3y"),
            ("x-goog-api-key", "k3y"),
        ];
        for (wire, (name, value)) in Wire::ALL.into_iter().zip(expected) {
            let headers = wire.auth_headers("k3y").unwrap();
            assert_eq!(headers.len(), 1);
            assert_eq!((headers[0].0.as_str(), headers[0].1.to_str().unwrap()), (name, value));
            assert!(headers[0].1.is_sensitive());
            assert!(!format!("{headers:?}").contains("k3y"));
        }
    }

    #[test]
    fn invalid_key_is_rejected_and_not_shown() {
        for wire in Wire::ALL {
            let error = wire.auth_headers("sk-secret\n").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn every_format_sends_json_and_anthropic_its_version() {
        for wire in Wire::ALL {
            let names: Vec<_> =
                wire.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            let version = r#"anthropic-version: "2023-06-01""#.to_owned();
            assert!(names.contains(&r#"content-type: "application/json""#.to_owned()));
            assert_eq!(names.contains(&version), wire == Wire::Anthropic);
        }
    }

    #[test]
    fn path_depends_on_format_model_and_streaming() {
        let request =
            |model: &str, stream| Request { model: model.to_owned(), stream, ..Request::default() };
        let cases = [
            (Wire::OpenAiChat, request("m", false), "/chat/completions"),
            (Wire::OpenAiResponses, request("m", true), "/responses"),
            (Wire::Anthropic, request("m", true), "/messages"),
            (Wire::Gemini, request("gemini-3-pro", false), "/models/gemini-3-pro:generateContent"),
            (Wire::Gemini, request("g", true), "/models/g:streamGenerateContent?alt=sse"),
            (Wire::Gemini, request("models/g", false), "/models/g:generateContent"),
            (Wire::Gemini, request("tunedModels/g", false), "/tunedModels/g:generateContent"),
            (Wire::Gemini, request("g?x=1#y", false), "/models/g%3Fx%3D1%23y:generateContent"),
        ];
        for (wire, request, path) in cases {
            assert_eq!(wire.path(&request), path);
        }
    }
}
