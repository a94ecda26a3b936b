//! Whether two JSON texts say the same: the order of an object's keys and the whitespace around
//! values are no difference, everything else is.
//!
//! Numbers are compared as they are written, so no digit is lost to a double. Keys that stand twice
//! count twice, in their order. NULL, an empty text and a key that is not there are three things.

/// Arrays and objects inside each other, at most: what lies deeper is compared by its bytes alone.
const DEPTH_MAX: u32 = 128;

/// Whether two texts are the same JSON. A text that is no JSON is the same only as itself.
pub fn same_json(one: &[u8], other: &[u8]) -> bool {
    one == other || Reader::read(one).is_some_and(|one| Reader::read(other) == Some(one))
}

/// A text taken apart.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Json<'t> {
    /// A number, `true`, `false` or `null`, as it is written.
    Bare(&'t [u8]),
    /// A text without its escapes.
    Text(Vec<u8>),
    Array(Vec<Self>),
    /// By key, and in the order of the text where a key stands twice.
    Object(Vec<(Vec<u8>, Self)>),
}

struct Reader<'t> {
    rest: &'t [u8],
}

impl<'t> Reader<'t> {
    fn read(text: &'t [u8]) -> Option<Json<'t>> {
        let mut reader = Self { rest: text };
        let json = reader.value(0)?;
        reader.space();
        reader.rest.is_empty().then_some(json)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes this byte, after whitespace, if it comes next.
    fn takes(&mut self, byte: u8) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self, depth: u32) -> Option<Json<'t>> {
        if depth > DEPTH_MAX {
            return None;
        }
        if self.takes(b'"') {
            return self.text().map(Json::Text);
        }
        if self.takes(b'[') {
            return self.many(b']', |reader| reader.value(depth + 1)).map(Json::Array);
        }
        if self.takes(b'{') {
            let mut entries = self.many(b'}', |reader| {
                let key = reader.takes(b'"').then(|| reader.text())??;
                reader.takes(b':').then(|| reader.value(depth + 1))?.map(|value| (key, value))
            })?;
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            return Some(Json::Object(entries));
        }
        let ends = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte);
        let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (bare, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = bare.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
        (number || [&b"true"[..], b"false", b"null"].contains(&bare)).then_some(Json::Bare(bare))
    }

    /// What stands between commas, up to the closing byte.
    fn many<T>(&mut self, close: u8, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = Vec::new();
        if self.takes(close) {
            return Some(all);
        }
        loop {
            all.push(one(self)?);
            if self.takes(close) {
                return Some(all);
            }
            self.takes(b',').then_some(())?;
        }
    }

    /// A text after its opening quote.
    fn text(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let plain = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            text.extend_from_slice(&self.rest[..plain]);
            let closes = self.rest[plain] == b'"';
            self.rest = &self.rest[plain + 1..];
            if closes {
                return Some(text);
            }
            let (escape, rest) = self.rest.split_first()?;
            self.rest = rest;
            match escape {
                b'"' | b'\\' | b'/' => text.push(*escape),
                b'b' => text.push(8),
                b'f' => text.push(12),
                b'n' => text.push(b'\n'),
                b'r' => text.push(b'\r'),
                b't' => text.push(b'\t'),
                b'u' => self.unicode(&mut text)?,
                _ => return None,
            }
        }
    }

    /// The rest of a `\u` escape; half of a pair of surrogates alone stays what it is.
    fn unicode(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let mut unit = self.hex()?;
        if (0xd800..0xdc00).contains(&unit) {
            let (high, behind) = (unit, self.rest);
            let paired = self.rest.strip_prefix(b"\\u").and_then(|rest| {
                self.rest = rest;
                self.hex().filter(|low| (0xdc00..0xe000).contains(low))
            });
            match paired {
                Some(low) => unit = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                None => self.rest = behind,
            }
        }
        match char::from_u32(unit) {
            Some(character) => {
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // No text in UTF-8 has this byte, so it is told from every other text.
            None => {
                text.push(0xff);
                text.extend_from_slice(&unit.to_be_bytes());
            }
        }
        Some(())
    }

    fn hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
    }
}

#[cfg(test)]
mod tests;
