//! Settings of a request, and the formats that have no field for them.
//!
//! The table lists what a format leaves out. A test encodes a request with and without each setting and
//! compares the result with the table.

use super::Wire;
use bakeoff_core::{OutputFormat, Request, Thinking};
use std::fmt;

/// Setting of a [`Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// [`Request::tools`].
    Tools,
    /// [`Request::tool_choice`].
    ToolChoice,
    /// [`Request::max_tokens`].
    MaxTokens,
    /// [`Request::temperature`].
    Temperature,
    /// [`Request::top_p`].
    TopP,
    /// [`Request::stop`].
    Stop,
    /// [`Request::seed`].
    Seed,
    /// [`Thinking::Effort`].
    Thinking,
    /// [`Thinking::Budget`].
    ThinkingTokens,
    /// [`OutputFormat::Json`].
    Json,
    /// [`OutputFormat::Schema`].
    JsonSchema,
}

/// Setting that a format has no field for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedSetting {
    /// The setting.
    pub setting: Setting,
    /// How to achieve the same otherwise.
    pub remedy: &'static str,
}

/// Settings that have no field in a format; all others are sent. [`Request::extra`] is sent in every format.
const UNSUPPORTED: &[(Wire, UnsupportedSetting)] = &[
    (
        Wire::OpenAiResponses,
        UnsupportedSetting {
            setting: Setting::Stop,
            remedy: "use the provider `openai`, or remove `stop`",
        },
    ),
    (
        Wire::OpenAiResponses,
        UnsupportedSetting {
            setting: Setting::Seed,
            remedy: "use the provider `openai`, or remove `seed`",
        },
    ),
    (
        Wire::Anthropic,
        UnsupportedSetting {
            setting: Setting::Seed,
            remedy: "remove `seed`; repeat trials instead",
        },
    ),
    (
        Wire::Anthropic,
        UnsupportedSetting {
            setting: Setting::Json,
            remedy: "use `json_schema`, or ask for JSON in the prompt",
        },
    ),
];

impl Setting {
    /// All settings.
    pub const ALL: [Setting; 11] = [
        Setting::Tools,
        Setting::ToolChoice,
        Setting::MaxTokens,
        Setting::Temperature,
        Setting::TopP,
        Setting::Stop,
        Setting::Seed,
        Setting::Thinking,
        Setting::ThinkingTokens,
        Setting::Json,
        Setting::JsonSchema,
    ];

    /// Returns the name of the setting in suite files.
    pub fn key(self) -> &'static str {
        match self {
            Setting::Tools => "tools",
            Setting::ToolChoice => "tool_choice",
            Setting::MaxTokens => "max_tokens",
            Setting::Temperature => "temperature",
            Setting::TopP => "top_p",
            Setting::Stop => "stop",
            Setting::Seed => "seed",
            Setting::Thinking => "thinking",
            Setting::ThinkingTokens => "thinking_tokens",
            Setting::Json => "json",
            Setting::JsonSchema => "json_schema",
        }
    }

    /// Whether a request has the setting.
    pub fn is_set(self, request: &Request) -> bool {
        match self {
            Setting::Tools => !request.tools.is_empty(),
            Setting::ToolChoice => request.tool_choice.is_some(),
            Setting::MaxTokens => request.max_tokens.is_some(),
            Setting::Temperature => request.temperature.is_some(),
            Setting::TopP => request.top_p.is_some(),
            Setting::Stop => !request.stop.is_empty(),
            Setting::Seed => request.seed.is_some(),
            Setting::Thinking => matches!(request.thinking, Some(Thinking::Effort(_))),
            Setting::ThinkingTokens => matches!(request.thinking, Some(Thinking::Budget(_))),
            Setting::Json => matches!(request.output, Some(OutputFormat::Json)),
            Setting::JsonSchema => matches!(request.output, Some(OutputFormat::Schema { .. })),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Wire {
    /// Whether the format has a field for a setting.
    pub fn supports(self, setting: Setting) -> bool {
        !UNSUPPORTED.iter().any(|(wire, row)| *wire == self && row.setting == setting)
    }

    /// Returns the settings of a request that the format has no field for; they are not sent.
    pub fn unsupported_settings(self, request: &Request) -> Vec<UnsupportedSetting> {
        UNSUPPORTED
            .iter()
            .filter(|(wire, row)| *wire == self && row.setting.is_set(request))
            .map(|(_, row)| *row)
            .collect()
    }
}
