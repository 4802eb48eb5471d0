//! Items in JSON, wherever they stand in a text.
//!
//! Objects are looked for from brace to brace. One that is broken or cut off is passed over, and
//! those within it are looked at instead: so a list that is cut in its middle still gives the items
//! before the cut. Put up with: prose and fences around it, commas before closing brackets, line
//! ends within texts, and Python's words for true, false and none.

use super::{Contents, Said, id_of};
use serde_json::{Map, Number, Value};

/// Deeper nesting is not what was asked for.
const MOST_DEPTH: usize = 32;

/// Broken objects that are looked into; a text with more of them is not JSON.
const MOST_BROKEN: usize = 200;

pub(super) fn read(text: &str, ids: &[String]) -> Contents {
    let mut contents = Contents::default();
    let (mut at, mut broken) = (0, 0);
    while let Some(open) = text[at..].find('{').map(|offset| at + offset) {
        let mut reader = Reader { text, at: open };
        match reader.value(0) {
            Ok(Value::Object(object)) => {
                take(object, ids, &mut contents);
                at = reader.at;
            }
            Ok(_) => at = reader.at,
            Err(problem) => {
                broken += 1;
                contents.problem.get_or_insert(problem);
                if broken >= MOST_BROKEN {
                    break;
                }
                at = open + 1;
            }
        }
    }
    contents.problem.get_or_insert_with(|| "there is no JSON object with items in it".to_owned());
    contents
}

/// What an object says: one item, a list of them, or items by their ids.
fn take(mut object: Map<String, Value>, ids: &[String], contents: &mut Contents) {
    if let Some(id) = object.get("id").and_then(id_of) {
        contents.items.push(Said { id, fields: Ok(object) });
        return;
    }
    if let Some(Value::Object(batch)) = object.remove("batch") {
        contents.batch.get_or_insert(batch);
    }
    for (name, value) in object {
        match value {
            Value::Array(items) => {
                for item in items {
                    if let Value::Object(item) = item
                        && let Some(id) = item.get("id").and_then(id_of)
                    {
                        contents.items.push(Said { id, fields: Ok(item) });
                    }
                }
            }
            Value::Object(fields) if ids.contains(&name) => {
                contents.items.push(Said { id: name, fields: Ok(fields) });
            }
            _ => {}
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MOST_DEPTH {
            return Err(self.problem("it is nested too deeply"));
        }
        self.white_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'+' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.word(),
            Some(_) => Err(self.problem("expected a value")),
            None => Err(self.ended()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut object = Map::new();
        loop {
            self.white_space();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(object));
                }
                Some(b'"') => {
                    let name = self.string()?;
                    self.white_space();
                    self.expect(b':')?;
                    let value = self.value(depth + 1)?;
                    if object.get(&name).is_some_and(|earlier| *earlier != value) {
                        return Err(self.problem(&format!("`{name}` comes twice")));
                    }
                    object.insert(name, value);
                    self.comma_or(b'}')?;
                }
                Some(_) => return Err(self.problem("expected a name in double quotes")),
                None => return Err(self.ended()),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.white_space();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.comma_or(b']')?;
        }
    }

    /// Passes a comma, or stays before what closes.
    fn comma_or(&mut self, close: u8) -> Result<(), String> {
        self.white_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            Some(_) => Err(self.problem(&format!("expected a comma or `{}`", char::from(close)))),
            None => Err(self.ended()),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut string = String::new();
        let mut characters = self.text[self.at..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += offset + 1;
                    return Ok(string);
                }
                '\\' => match characters.next().map(|(_, escaped)| escaped) {
                    Some('n') => string.push('\n'),
                    Some('t') => string.push('\t'),
                    Some('r') => string.push('\r'),
                    Some('b') => string.push('\u{8}'),
                    Some('f') => string.push('\u{c}'),
                    Some('u') => {
                        let rest = characters.as_str();
                        let (unit, used) = unicode(rest);
                        string.push(unit);
                        (0..used).for_each(|_| {
                            characters.next();
                        });
                    }
                    Some(other) => string.push(other),
                    None => break,
                },
                other => string.push(other),
            }
        }
        self.at = self.text.len();
        Err(self.ended())
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || ['-', '+', '.', 'e', 'E'].contains(&c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let number = rest[..length].trim_start_matches('+').parse::<Number>();
        let number = number.map_err(|_| self.problem("not a number"))?;
        self.at += length;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let value = match &rest[..length] {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => return Err(self.problem("a text without quotes")),
        };
        self.at += length;
        Ok(value)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.problem(&format!("expected `{}`", char::from(byte)))),
            None => Err(self.ended()),
        }
    }

    fn white_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("{what} (line {line} of the reply)")
    }

    fn ended(&self) -> String {
        "it ends in the middle".to_owned()
    }
}

/// The character of `\uXXXX`, perhaps with its second half, and how many characters that took.
/// Half a character becomes the one that stands for what cannot be shown.
fn unicode(rest: &str) -> (char, usize) {
    let unit = |text: &str| text.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let Some(first) = unit(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    let second = rest.get(4..).and_then(|rest| rest.strip_prefix("\\u")).and_then(unit);
    match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
        }
        _ => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4),
    }
}
