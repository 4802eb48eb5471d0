//! Tolerant values: what compatible servers send instead of the documented types.
//!
//! A value of an unexpected type in a minor field must not make a whole response undecodable. Types that
//! cannot be interpreted count as absent.

use bakeoff_core::{MAX_TOKENS, Usage};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde::de::{Error, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A token count or an index: a number, a number as text, or anything else, which counts as zero. A negative number is
/// [`Count::IMPLAUSIBLE`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl Count {
    /// A number that is no count.
    pub(super) const IMPLAUSIBLE: Count = Count(u64::MAX);

    fn from_float(count: f64) -> Count {
        // The cast saturates at the largest number.
        if count < 0.0 { Count::IMPLAUSIBLE } else { Count(count as u64) }
    }
}

/// Returns the usage, which is unknown if one of its counts is implausible.
pub(super) fn plausible(counts: &[Count], usage: impl FnOnce() -> Usage) -> Usage {
    let has_implausible = counts.iter().any(|count| count.0 > MAX_TOKENS);
    if has_implausible { Usage::default() } else { usage() }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a count")
            }
            fn visit_u64<E: Error>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<Count, E> {
                Ok(u64::try_from(count).map_or(Count::IMPLAUSIBLE, Count))
            }
            fn visit_f64<E: Error>(self, count: f64) -> Result<Count, E> {
                Ok(Count::from_float(count))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Count, E> {
                let text = text.trim();
                let float = || text.parse().map_or(Count(0), Count::from_float);
                Ok(text.parse().map_or_else(|_| float(), Count))
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Count, E> {
                Ok(Count(0))
            }
            fn visit_unit<E: Error>(self) -> Result<Count, E> {
                Ok(Count(0))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Count(0))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Count(0))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

/// A text. Numbers and booleans are converted; lists and objects become an empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn into_owned(self) -> String {
        self.0.into_owned()
    }

    /// Returns the text, or `None` if it is empty.
    pub(super) fn non_empty(self) -> Option<String> {
        Some(self.0).filter(|text| !text.is_empty()).map(Cow::into_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text)))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(number.to_string())))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(number.to_string())))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(number.to_string())))
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(flag.to_string())))
            }
            fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// An object of a minor field; any other value counts as the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lenient<T>(pub(super) T);

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Lenient(serde_json::from_str(raw.get()).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_accepts_any_value() {
        let cases = [
            ("7", 7),
            ("7.0", 7),
            ("\"7\"", 7),
            ("\" 7.0 \"", 7),
            ("-1", u64::MAX),
            ("-1.5", u64::MAX),
            ("\"-1\"", u64::MAX),
            ("null", 0),
            ("1e99", u64::MAX),
            ("\"many\"", 0),
            ("true", 0),
            ("[1, [2]]", 0),
            ("{\"a\": {}}", 0),
        ];
        for (json, count) in cases {
            assert_eq!(serde_json::from_str::<Count>(json).unwrap(), Count(count), "{json}");
        }
    }

    #[test]
    fn text_accepts_any_value() {
        let cases = [
            ("\"a\\n\"", "a\n"),
            ("12", "12"),
            ("-1", "-1"),
            ("1.5", "1.5"),
            ("true", "true"),
            ("null", ""),
            ("[\"a\"]", ""),
            ("{\"a\": 1}", ""),
        ];
        for (json, text) in cases {
            assert_eq!(serde_json::from_str::<Text<'_>>(json).unwrap().0, text, "{json}");
        }
    }

    #[test]
    fn lenient_object_falls_back_to_its_default() {
        let parsed =
            |json| serde_json::from_str::<Lenient<std::collections::BTreeMap<String, u8>>>(json);
        assert_eq!(parsed("{\"a\": 1}").unwrap().0["a"], 1);
        assert!(parsed("\"none\"").unwrap().0.is_empty());
        assert!(parsed("{\"a\": -1}").unwrap().0.is_empty());
        assert!(parsed("{").is_err());
    }
}
