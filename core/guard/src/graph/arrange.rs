//! Orders the items of each row, and gives them coordinates.

use std::collections::BTreeMap;

use super::layout::{Arrangement, Extent};

const GAP: f64 = 16.0;
const SWEEPS: usize = 24;

#[derive(Clone, Copy)]
enum Side {
    Above,
    Below,
    Both,
}

impl Arrangement {
    /// Sorts every row by where the neighbours of its items are, which untangles most edges.
    pub(super) fn order(&mut self) {
        for row in 0..self.rows.len() {
            self.number(row);
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            for step in 0..self.rows.len() {
                let row = if down {
                    step
                } else {
                    self.rows.len() - 1 - step
                };
                let side = if down { Side::Above } else { Side::Below };
                let mut items = self.rows.get(row).cloned().unwrap_or_default();
                items.sort_by(|a, b| {
                    self.desired_x(*a, side)
                        .total_cmp(&self.desired_x(*b, side))
                });
                if let Some(slot) = self.rows.get_mut(row) {
                    *slot = items;
                }
                self.number(row);
            }
        }
    }

    /// While rows are ordered, the place in the row stands for the coordinate.
    fn number(&mut self, row: usize) {
        let items = self.rows.get(row).cloned().unwrap_or_default();
        let mut x = 0.0;
        for number in items {
            if let Some(item) = self.items.get_mut(number) {
                item.x = x;
            }
            x += 1.0;
        }
    }

    /// The mean of the neighbours' coordinates, or the item's own coordinate if it has no neighbours.
    fn desired_x(&self, number: usize, side: Side) -> f64 {
        let Some(item) = self.items.get(number) else {
            return 0.0;
        };
        let (above, below): (&[usize], &[usize]) = match side {
            Side::Above => (&item.above, &[]),
            Side::Below => (&[], &item.below),
            Side::Both => (&item.above, &item.below),
        };
        let mut sum = 0.0;
        let mut count = 0.0;
        for neighbour in above.iter().chain(below) {
            sum += self.x(*neighbour);
            count += 1.0;
        }
        if count == 0.0 { item.x } else { sum / count }
    }

    /// Moves every item as close to its neighbours as the others in its row allow. At the end, moves every
    /// long edge onto one vertical line.
    pub(super) fn place(&mut self) {
        for row in 0..self.rows.len() {
            self.place_row(row, |_, _| 0.0);
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let last = sweep >= SWEEPS / 2;
            let lines = if last { self.lines() } else { BTreeMap::new() };
            for step in 0..self.rows.len() {
                let row = if down {
                    step
                } else {
                    self.rows.len() - 1 - step
                };
                let side = match (last, down) {
                    (true, _) => Side::Both,
                    (false, true) => Side::Above,
                    (false, false) => Side::Below,
                };
                self.place_row(row, |this, item| {
                    let line = lines.get(&item).copied();
                    line.unwrap_or_else(|| this.desired_x(item, side))
                });
            }
        }
    }

    /// For every item of a long edge, the mean coordinate of all items of that edge.
    fn lines(&self) -> BTreeMap<usize, f64> {
        let mut lines = BTreeMap::new();
        for chain in self.chains.iter().filter(|chain| chain.len() > 1) {
            let mut sum = 0.0;
            let mut count = 0.0;
            for item in chain {
                sum += self.x(*item);
                count += 1.0;
            }
            lines.extend(chain.iter().map(|item| (*item, sum / count)));
        }
        lines
    }

    /// Gives the items of a row the coordinates that are closest to their preferred ones and keep order and
    /// distance. Items that push each other form a block, which is placed at the mean of their preferences.
    fn place_row(&mut self, row: usize, wish: impl Fn(&Self, usize) -> f64) {
        let items = self.rows.get(row).cloned().unwrap_or_default();
        let mut offset = 0.0;
        let mut before: Option<Extent> = None;
        let mut offsets = Vec::new();
        // Each block: the sum of the weighted preferences, the sum of the weights, and the number of items.
        let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
        for number in &items {
            let Some(item) = self.items.get(*number) else {
                continue;
            };
            if let Some(before) = before {
                offset += before.right + GAP + item.extent.left;
            }
            before = Some(item.extent);
            offsets.push(offset);
            let wished = wish(self, *number) - offset;
            blocks.push((wished * item.weight, item.weight, 1));
            while let [.., left, right] = blocks.as_slice()
                && left.0 / left.1 > right.0 / right.1
            {
                let merged = (left.0 + right.0, left.1 + right.1, left.2 + right.2);
                blocks.truncate(blocks.len() - 2);
                blocks.push(merged);
            }
        }
        let places = blocks.iter();
        let places =
            places.flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, *count));
        for ((number, offset), place) in items.iter().zip(offsets).zip(places) {
            if let Some(item) = self.items.get_mut(*number) {
                item.x = place + offset;
            }
        }
    }
}
