//! The built-in providers.

use crate::{TokenLimitField, Wire};
use bakeoff_core::Redactor;
use http::HeaderName;

/// A provider: its wire format, address and API key.
#[derive(Debug)]
pub struct Provider {
    /// Name used in `provider/model`.
    pub name: &'static str,
    /// Wire format; `None` for the simulated provider in this process.
    pub wire: Option<Wire>,
    /// Base URL; `None` when it differs per user.
    pub base_url: Option<&'static str>,
    /// Environment variable with the API key.
    pub key_variable: &'static str,
    /// Header for the API key, where it differs from that of the wire format.
    pub key_header: Option<&'static str>,
    /// Id in the price catalogue.
    pub catalogue_id: &'static str,
    /// Field of Chat Completions for the token limit.
    pub limit_field: TokenLimitField,
}

const fn openai_like(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
) -> Provider {
    Provider {
        name,
        wire: Some(Wire::OpenAiChat),
        base_url: Some(base_url),
        key_variable,
        key_header: None,
        catalogue_id: name,
        limit_field: TokenLimitField::MaxTokens,
    }
}

/// All providers, sorted by name.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        wire: Some(Wire::Anthropic),
        base_url: Some("https://api.anthropic.com/v1"),
        key_variable: "ANTHROPIC_API_KEY",
        key_header: None,
        catalogue_id: "anthropic",
        limit_field: TokenLimitField::MaxTokens,
    },
    Provider {
        name: "azure",
        wire: Some(Wire::OpenAiChat),
        base_url: None,
        key_variable: "AZURE_OPENAI_API_KEY",
        key_header: Some("api-key"),
        catalogue_id: "azure",
        limit_field: TokenLimitField::MaxCompletionTokens,
    },
    openai_like("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    Provider {
        name: "gemini",
        wire: Some(Wire::Gemini),
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        key_variable: "GEMINI_API_KEY",
        key_header: None,
        catalogue_id: "google",
        limit_field: TokenLimitField::MaxTokens,
    },
    openai_like("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    openai_like("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    // The name decides, also with another `base_url`: the official SDKs send `max_completion_tokens`, and
    // vLLM and llama.cpp (since 2026) accept it. Older servers ignore it; `extra` can add the field
    // that they know.
    Provider {
        limit_field: TokenLimitField::MaxCompletionTokens,
        ..openai_like("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
    },
    Provider {
        name: "openai-responses",
        wire: Some(Wire::OpenAiResponses),
        base_url: Some("https://api.openai.com/v1"),
        key_variable: "OPENAI_API_KEY",
        key_header: None,
        catalogue_id: "openai",
        limit_field: TokenLimitField::MaxTokens,
    },
    openai_like("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Provider {
        name: "sim",
        wire: None,
        base_url: None,
        key_variable: "BAKEOFF_SIM_API_KEY",
        key_header: None,
        catalogue_id: "sim",
        limit_field: TokenLimitField::MaxTokens,
    },
    openai_like("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
];

impl Provider {
    /// Returns the provider with this name.
    pub fn find(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Adds the API keys of all providers that the environment holds to a redactor. Programs see the whole
    /// environment and may print it.
    pub fn add_secrets(environment: crate::Environment<'_>, redactor: &mut Redactor) {
        for provider in PROVIDERS {
            if let Some(key) = environment(provider.key_variable) {
                redactor.add(&key);
            }
        }
    }

    /// Returns the header that carries the API key; `None` for the simulated provider in this process.
    pub(crate) fn key_header(&self) -> Option<HeaderName> {
        let own = self.key_header.map(HeaderName::from_static);
        own.or_else(|| self.wire.map(Wire::key_header))
    }
}
