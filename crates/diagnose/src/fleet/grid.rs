//! Hosts × rows, and the units that are judged.

use super::robust::{Place, median};

/// Rows of a family that a host must have for the family to be judged, at least.
const ROWS_OF_A_FAMILY: usize = 3;
/// Rows of one run share its minutes: a hundred of them that agree are no hundred independent witnesses (as
/// `compare::spread`).
const INDEPENDENT: f64 = 8.0;
/// Hosts whose figures are read together: a cache line of 64 bytes has those of 16.
const BLOCK: usize = 64;

/// What one judgement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// All rows together.
    All,
    /// A family of rows, by its number.
    Family(u8),
    /// One row, by its number.
    Row(u32),
}

/// The figures of a group of peers: for each row a value per host, as the logarithm of a cost (more is slower), with
/// the standard deviation that the host's own interval states. A figure that was not observed is NaN, and takes part in
/// nothing.
#[derive(Clone, Debug)]
pub struct Grid {
    hosts: usize,
    logs: Vec<f32>,
    own: Vec<f32>,
    families: Vec<u8>,
}

impl Grid {
    /// An empty grid of so many hosts, whose rows are of these families.
    pub fn new(hosts: usize, families: Vec<u8>) -> Grid {
        let cells = hosts * families.len();
        Grid {
            hosts,
            logs: vec![f32::NAN; cells],
            own: vec![f32::NAN; cells],
            families,
        }
    }

    /// States a figure: the logarithm of a cost, and one standard deviation of it. What is not finite stays not
    /// observed.
    pub fn set(&mut self, host: usize, row: usize, log: f64, own: f64) {
        if log.is_finite() && own.is_finite() && own >= 0.0 {
            let at = row * self.hosts + host;
            (self.logs[at], self.own[at]) = (log as f32, own as f32);
        }
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.families.len()
    }

    /// The values of one row, a host each; NaN where none was observed.
    fn cells(&self, row: usize) -> (&[f32], &[f32]) {
        let cells = row * self.hosts..(row + 1) * self.hosts;
        (&self.logs[cells.clone()], &self.own[cells])
    }

    /// What was observed of a row.
    pub fn row(&self, row: usize) -> Vec<Option<(f64, f64)>> {
        let (logs, own) = self.cells(row);
        logs.iter()
            .zip(own)
            .map(|(l, o)| (!l.is_nan()).then(|| (f64::from(*l), f64::from(*o))))
            .collect()
    }

    /// Makes each row a difference from its middle, and gives the middles.
    pub fn centre(&mut self) -> Vec<Option<Place>> {
        let rows: Vec<usize> = (0..self.rows()).collect();
        let places = by_every_cpu(&rows, |row| {
            Place::of(&self.row(*row).into_iter().flatten().collect::<Vec<_>>())
        });
        for (place, logs) in places.iter().zip(self.logs.chunks_mut(self.hosts.max(1))) {
            if let Some(place) = place {
                logs.iter_mut().for_each(|l| *l -= place.centre as f32);
            }
        }
        places
    }

    /// The families that there are, by number.
    pub fn families(&self) -> Vec<u8> {
        let mut families = self.families.clone();
        families.sort_unstable();
        families.dedup();
        families
    }

    /// Per host the middle of a centred grid's rows of a family, or of all rows; nothing for a host with less than half
    /// of them.
    pub fn together(&self, family: Option<u8>) -> Vec<Option<(f64, f64)>> {
        let hosts: Vec<usize> = (0..self.hosts).collect();
        self.together_of(family, &hosts)
    }

    /// The same of these hosts only.
    pub fn together_of(&self, family: Option<u8>, hosts: &[usize]) -> Vec<Option<(f64, f64)>> {
        let rows: Vec<usize> = (0..self.rows())
            .filter(|r| family.is_none_or(|f| self.families[*r] == f))
            .collect();
        if rows.len() < ROWS_OF_A_FAMILY {
            return vec![None; hosts.len()];
        }
        let blocks: Vec<&[usize]> = hosts.chunks(BLOCK).collect();
        by_every_cpu(&blocks, |block| self.block(&rows, block)).concat()
    }

    /// The middles of some neighbouring hosts in these rows. A row's figures are side by side: row by row they are read
    /// once.
    fn block(&self, rows: &[usize], hosts: &[usize]) -> Vec<Option<(f64, f64)>> {
        let mut figures: Vec<(Vec<f64>, Vec<f64>)> = vec![
            (
                Vec::with_capacity(rows.len()),
                Vec::with_capacity(rows.len())
            );
            hosts.len()
        ];
        for row in rows {
            let (of_row, own_of_row) = self.cells(*row);
            for ((logs, own), host) in figures
                .iter_mut()
                .zip(hosts)
                .filter(|(_, host)| !of_row[**host].is_nan())
            {
                logs.push(f64::from(of_row[*host]));
                own.push(f64::from(own_of_row[*host]));
            }
        }
        let middle = |(mut logs, mut own): (Vec<f64>, Vec<f64>)| {
            let enough = logs.len() >= ROWS_OF_A_FAMILY && logs.len() * 2 >= rows.len();
            enough.then(|| {
                (
                    median(&mut logs),
                    median(&mut own) / (rows.len() as f64).min(INDEPENDENT).sqrt(),
                )
            })
        };
        figures.into_iter().map(middle).collect()
    }

    /// What was observed of a unit of a centred grid.
    pub fn unit(&self, unit: Unit) -> Vec<Option<(f64, f64)>> {
        match unit {
            Unit::All => self.together(None),
            Unit::Family(family) => self.together(Some(family)),
            Unit::Row(row) => self.row(row as usize),
        }
    }
}

/// What is made of each of these, in their order, by every CPU.
pub fn by_every_cpu<T: Sync, U: Send>(of: &[T], one: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = &one;
    std::thread::scope(|scope| {
        let all = move |part: &[T]| part.iter().map(one).collect::<Vec<_>>();
        // Where the system refuses another thread, this one does its part.
        let start = |part| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || all(part))
                .map_err(|_| part)
        };
        let parts: Vec<_> = of
            .chunks(of.len().div_ceil(threads).max(1))
            .map(start)
            .collect();
        let done = |thread: std::thread::ScopedJoinHandle<_>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts
            .into_iter()
            .flat_map(|part| part.map_or_else(all, done))
            .collect()
    })
}

/// The middle of a host's figures in one unit, with its standard deviation: of a single row that row's own. Nothing for
/// none.
pub fn middle(figures: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (mut logs, mut own): (Vec<f64>, Vec<f64>) = figures.iter().copied().unzip();
    (!logs.is_empty()).then(|| {
        (
            median(&mut logs),
            median(&mut own) / (figures.len() as f64).min(INDEPENDENT).sqrt(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_middle_of_its_centred_rows() {
        let mut grid = Grid::new(3, vec![0, 0, 0, 1]);
        for row in 0..4 {
            for host in 0..3 {
                grid.set(host, row, 10.0 * row as f64 + host as f64, 0.4);
            }
        }
        grid.set(2, 3, f64::NAN, 0.1);
        let places = grid.centre();
        assert_eq!(places[1].unwrap().centre, 11.0);
        let of_zero = grid.unit(Unit::Family(0));
        assert_eq!(
            of_zero.iter().map(|v| v.unwrap().0).collect::<Vec<_>>(),
            [-1.0, 0.0, 1.0]
        );
        assert!((of_zero[0].unwrap().1 - 0.4 / 3_f64.sqrt()).abs() < 1e-6);
        assert_eq!(grid.unit(Unit::Family(1)), [None; 3]);
        assert_eq!(
            (grid.families(), grid.unit(Unit::Row(3))[0].unwrap().0),
            (vec![0, 1], -1.0)
        );
    }

    #[test]
    fn what_was_not_observed_takes_no_part() {
        let mut grid = Grid::new(2, vec![0; 4]);
        (0..4).for_each(|row| grid.set(0, row, 1.0, 0.1));
        grid.set(1, 0, f64::INFINITY, 0.1);
        assert_eq!(grid.centre(), [None; 4]);
        assert_eq!((grid.row(0)[1], grid.together(None)[1]), (None, None));
    }
}
