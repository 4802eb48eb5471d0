//! The providers Bakeoff knows by name.

use crate::Wire;

/// A provider: how it is spoken to, where it lives and where its key is kept.
#[derive(Debug)]
pub struct Provider {
    /// What users write.
    pub name: &'static str,
    /// The format it speaks; `None` is the simulated provider in this process.
    pub wire: Option<Wire>,
    /// Its address; `None` when every user has another.
    pub base_url: Option<&'static str>,
    /// The environment variable that holds the key.
    pub key_variable: &'static str,
    /// The header that carries the key, where it is not the format's own.
    pub key_header: Option<&'static str>,
    /// Its id in the price catalogue.
    pub catalogue_id: &'static str,
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
    }
}

/// Every provider, sorted by name.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        wire: Some(Wire::Anthropic),
        base_url: Some("https://api.anthropic.com/v1"),
        key_variable: "ANTHROPIC_API_KEY",
        key_header: None,
        catalogue_id: "anthropic",
    },
    Provider {
        name: "azure",
        wire: Some(Wire::OpenAiChat),
        base_url: None,
        key_variable: "AZURE_OPENAI_API_KEY",
        key_header: Some("api-key"),
        catalogue_id: "azure",
    },
    openai_like("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    Provider {
        name: "gemini",
        wire: Some(Wire::Gemini),
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        key_variable: "GEMINI_API_KEY",
        key_header: None,
        catalogue_id: "google",
    },
    openai_like("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    openai_like("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    openai_like("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Provider {
        name: "openai-responses",
        wire: Some(Wire::OpenAiResponses),
        base_url: Some("https://api.openai.com/v1"),
        key_variable: "OPENAI_API_KEY",
        key_header: None,
        catalogue_id: "openai",
    },
    openai_like("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Provider {
        name: "sim",
        wire: None,
        base_url: None,
        key_variable: "BAKEOFF_SIM_API_KEY",
        key_header: None,
        catalogue_id: "sim",
    },
    openai_like("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
];

impl Provider {
    /// The provider of that name.
    pub fn find(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}
