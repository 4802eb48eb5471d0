//! One item of a packed prompt: `{"id":"…","data":{…}}`.
//!
//! Data is what users have, and JSON can say what no value of ours can hold: half of a surrogate
//! pair, or a number beyond all others. Such things are taken as they are written.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// An item that answers are made up about.
pub(super) struct Item {
    pub(super) id: String,
    /// The first value of its data, in the order in which it is written.
    pub(super) text: String,
    /// Names all of its data.
    hash: blake3::Hash,
}

impl Item {
    /// Something that is not in the prompt.
    pub(super) fn of(text: &str) -> Item {
        let hash = blake3::hash(text.as_bytes());
        Item { id: String::new(), text: text.to_owned(), hash }
    }

    /// A number below `end` that depends on the item's data and on what it is for.
    pub(super) fn draw(&self, what: &str, end: u64) -> u64 {
        let hash = blake3::keyed_hash(self.hash.as_bytes(), what.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(bytes) % end.max(1)
    }
}

#[derive(Deserialize)]
struct Line<'t> {
    id: String,
    #[serde(borrow)]
    data: &'t RawValue,
}

/// The item on a line; nothing when there is none.
pub(super) fn read(line: &str) -> Option<Item> {
    let Line { id, data } = serde_json::from_str(line).ok()?;
    let First(first) = serde_json::from_str(data.get()).ok()?;
    let text = first.map_or_else(String::new, |first| match first.get().starts_with('"') {
        true => text(first.get()),
        false => first.get().to_owned(),
    });
    Some(Item { id, text, hash: blake3::hash(data.get().as_bytes()) })
}

/// The value of the first field of an object.
struct First<'t>(Option<&'t RawValue>);

impl<'de: 't, 't> Deserialize<'de> for First<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First<'t>, D::Error> {
        struct OfAnObject;
        impl<'de> Visitor<'de> for OfAnObject {
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
        deserializer.deserialize_map(OfAnObject).map(First)
    }
}

/// A JSON string as a text; halves of surrogate pairs become what stands for them elsewhere.
fn text(quoted: &str) -> String {
    if let Ok(text) = serde_json::from_str(quoted) {
        return text;
    }
    let mut whole = String::new();
    let mut rest = quoted;
    while let Some((before, after)) = rest.split_once('\\') {
        whole.push_str(before);
        let length = if after.starts_with('u') { 5 } else { 1 };
        let escape = after.get(..length).unwrap_or(after);
        let pair = after.get(..11).filter(|pair| is_character(pair));
        match (pair, is_character(escape)) {
            (Some(pair), _) => whole.extend(["\\", pair]),
            (None, true) => whole.extend(["\\", escape]),
            (None, false) => whole.push(char::REPLACEMENT_CHARACTER),
        }
        rest = &after[pair.unwrap_or(escape).len()..];
    }
    whole.push_str(rest);
    serde_json::from_str(&whole).unwrap_or_default()
}

/// Whether something is one character when it stands behind a backslash.
fn is_character(escape: &str) -> bool {
    let read = serde_json::from_str::<String>(&format!("\"\\{escape}\""));
    read.is_ok_and(|text| text.chars().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_json_is_an_item() {
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
            let item = read(&format!("{{\"id\":\"k\",\"data\":{data}}}")).unwrap();
            assert_eq!((item.id.as_str(), item.text.as_str()), ("k", expected));
        }
        assert!(read("{\"id\":\"k\"}").is_none() && read("prose").is_none());
    }
}
