//! Lists and maps of a file from elsewhere, refused as soon as they are longer than any honest file's.
//!
//! A number of two bytes in a file is eight in memory, an empty object some hundred: what is not bounded while it is
//! read can make a small file fill a machine.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// At most `N` items.
pub struct List<T, const N: usize>(pub Vec<T>);

/// At most `N` entries of text.
#[derive(Default)]
pub struct Texts<const N: usize>(pub BTreeMap<String, String>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for List<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_seq(Items::<T, N>(PhantomData))
            .map(List)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Texts<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries::<N>).map(Texts)
    }
}

struct Items<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Items<T, N> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {N} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == N {
                return Err(A::Error::custom(format_args!(
                    "a list of more than {N} items"
                )));
            }
            list.push(item);
        }
        Ok(list)
    }
}

struct Entries<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for Entries<N> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {N} texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            if map.len() == N {
                return Err(A::Error::custom(format_args!(
                    "an object of more than {N} entries"
                )));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_allowed_is_refused_and_the_rest_is_read() {
        assert_eq!(
            serde_json::from_str::<List<i32, 3>>("[1,2,3]").unwrap().0,
            [1, 2, 3]
        );
        let error = serde_json::from_str::<List<i32, 3>>("[1,2,3,4]")
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("more than 3 items"), "{error}");
        assert_eq!(
            serde_json::from_str::<Texts<1>>(r#"{"a":"b"}"#).unwrap().0["a"],
            "b"
        );
        assert!(serde_json::from_str::<Texts<1>>(r#"{"a":"b","c":"d"}"#).is_err());
    }
}
