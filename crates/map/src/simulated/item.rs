//! Items of a packed prompt: `{"id":"…","data":{…}}`.
//!
//! User data can be valid JSON that `serde_json::Value` cannot represent, such as an unpaired
//! surrogate or a number out of range. Such values are kept as raw text.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// An item to generate an answer for.
pub(super) struct PromptItem {
    pub(super) id: String,
    /// FirstValue value of the data, in written order.
    pub(super) text: String,
    /// Hash of the data.
    hash: blake3::Hash,
}

impl PromptItem {
    /// Creates an item that is not in the prompt.
    pub(super) fn from_text(text: &str) -> PromptItem {
        let hash = blake3::hash(text.as_bytes());
        PromptItem { id: String::new(), text: text.to_owned(), hash }
    }

    /// Returns a number below `end` that depends on the item's data and the purpose.
    pub(super) fn draw(&self, purpose: &str, end: u64) -> u64 {
        let hash = blake3::keyed_hash(self.hash.as_bytes(), purpose.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(bytes) % end.max(1)
    }
}

#[derive(Deserialize)]
struct ItemLine<'t> {
    id: String,
    #[serde(borrow)]
    data: &'t RawValue,
}

/// Parses the item on a line; returns `None` for other lines.
pub(super) fn parse(line: &str) -> Option<PromptItem> {
    let ItemLine { id, data } = serde_json::from_str(line).ok()?;
    let FirstValue(first) = serde_json::from_str(data.get()).ok()?;
    let text = first.map_or_else(String::new, |first| match first.get().starts_with('"') {
        true => decode_string(first.get()),
        false => first.get().to_owned(),
    });
    Some(PromptItem { id, text, hash: blake3::hash(data.get().as_bytes()) })
}

/// Value of the first field of an object.
struct FirstValue<'t>(Option<&'t RawValue>);

impl<'de: 't, 't> Deserialize<'de> for FirstValue<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FirstValue<'t>, D::Error> {
        struct FirstValueVisitor;
        impl<'de> Visitor<'de> for FirstValueVisitor {
            type Value = Option<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the data of an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut first = None;
                while map.next_key::<IgnoredAny>()?.is_some() {
                    let value = map.next_value::<&RawValue>()?;
                    first.get_or_insert(value);
                }
                Ok(first)
            }
        }
        deserializer.deserialize_map(FirstValueVisitor).map(FirstValue)
    }
}

/// Decodes a JSON string; unpaired surrogates become U+FFFD.
fn decode_string(quoted: &str) -> String {
    if let Ok(text) = serde_json::from_str(quoted) {
        return text;
    }
    let mut repaired = String::new();
    let mut rest = quoted;
    while let Some((before, after)) = rest.split_once('\\') {
        repaired.push_str(before);
        let length = if after.starts_with('u') { 5 } else { 1 };
        let escape = after.get(..length).unwrap_or(after);
        let pair = after.get(..11).filter(|pair| is_character(pair));
        match (pair, is_character(escape)) {
            (Some(pair), _) => repaired.extend(["\\", pair]),
            (None, true) => repaired.extend(["\\", escape]),
            (None, false) => repaired.push(char::REPLACEMENT_CHARACTER),
        }
        rest = &after[pair.unwrap_or(escape).len()..];
    }
    repaired.push_str(rest);
    serde_json::from_str(&repaired).unwrap_or_default()
}

/// Whether a backslash followed by `escape` encodes exactly one character.
fn is_character(escape: &str) -> bool {
    let decoded = serde_json::from_str::<String>(&format!("\"\\{escape}\""));
    decoded.is_ok_and(|text| text.chars().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_unrepresentable_values_are_parsed() {
        for (data, expected) in [
            (r#"{"z":"row <7>","a":1}"#, "row <7>"),
            (r#"{"z":1e999,"a":"x"}"#, "1e999"),
            (
                r#"{"z":"a\ud800b\n\"c\" \ud83d\ude00 \udc00"}"#,
                "a\u{fffd}b\n\"c\" \u{1f600} \u{fffd}",
            ),
            (r#"{"z":"x","a":["\ud800"]}"#, "x"),
            (r#"{"z":{"a":12345678901234567890123}}"#, r#"{"a":12345678901234567890123}"#),
            ("{}", ""),
        ] {
            let item = parse(&format!("{{\"id\":\"k\",\"data\":{data}}}")).unwrap();
            assert_eq!((item.id.as_str(), item.text.as_str()), ("k", expected));
        }
        assert!(parse("{\"id\":\"k\"}").is_none() && parse("prose").is_none());
    }
}
