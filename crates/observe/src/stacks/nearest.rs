//! Of many things that begin at addresses, those that begin nearest below some few addresses, without keeping the
//! others: a table of symbols may have millions.

/// Looks for what begins nearest below each of these addresses.
#[derive(Debug)]
pub struct Nearest<T> {
    wanted: Vec<u64>,
    /// The last that begins between the wanted address before and this one.
    last: Vec<Option<(u64, T)>>,
}

impl<T> Nearest<T> {
    pub fn to(wanted: impl IntoIterator<Item = u64>) -> Nearest<T> {
        let mut wanted: Vec<u64> = wanted.into_iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let last = wanted.iter().map(|_| None).collect();
        Nearest { wanted, last }
    }

    /// Something that begins here. Of two that begin at one address, the first stays where it `stays` beside the later.
    pub fn offer(&mut self, begins: u64, stays: impl FnOnce(&T) -> bool, what: impl FnOnce() -> T) {
        let place = self.wanted.partition_point(|wanted| *wanted < begins);
        let Some(last) = self.last.get_mut(place) else {
            return;
        };
        let later = last
            .as_ref()
            .is_none_or(|(known, first)| *known < begins || *known == begins && !stays(first));
        if later {
            *last = Some((begins, what()));
        }
    }

    /// What begins nearest below an address that was asked for, and where.
    pub fn below(&self, address: u64) -> Option<&(u64, T)> {
        let places = self.wanted.partition_point(|wanted| *wanted <= address);
        self.last[..places].iter().rev().find_map(Option::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_nearest_below_is_found_in_any_order() {
        let things = [
            (10, 'a'),
            (50, 'e'),
            (20, 'b'),
            (20, 'B'),
            (30, 'c'),
            (5, 'z'),
        ];
        let mut nearest = Nearest::to([25, 20, 49, 4, 60, 25]);
        for (begins, what) in things {
            nearest.offer(begins, |_| true, || what);
        }
        let below = |address| {
            nearest
                .below(address)
                .map(|(begins, what)| (*begins, *what))
        };
        assert_eq!(below(4), None);
        assert_eq!((below(20), below(25)), (Some((20, 'b')), Some((20, 'b'))));
        assert_eq!((below(49), below(60)), (Some((30, 'c')), Some((50, 'e'))));
        let mut last = Nearest::to([20]);
        last.offer(20, |_| false, || 1);
        last.offer(20, |_| false, || 2);
        assert_eq!(last.below(20), Some(&(20, 2)));
    }
}
