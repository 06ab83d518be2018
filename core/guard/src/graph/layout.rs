//! Puts boxes into rows and edges between them, so that nothing lies on anything else.
//!
//! Boxes stand in even rows and the labels of edges in odd ones. An edge that passes a row takes a
//! place in it like a box does, and bends only in the gaps between rows.

use super::layers::layers;

/// What is to be laid out.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    pub(super) boxes: Vec<Extent>,
    /// Boxes that belong at the top.
    pub(super) tops: Vec<usize>,
    pub(super) links: Vec<Link>,
}

/// A way from one box to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The width of its label.
    pub(super) label: f64,
}

/// The room something takes to both sides of its middle line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) right: f64,
}

/// Where everything is; rows are counted from the top.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) rows: usize,
    pub(super) width: f64,
    pub(super) boxes: Vec<Spot>,
    /// For each link the places it passes, from its first box to its last, both left out.
    pub(super) paths: Vec<Vec<Spot>>,
    /// For each link which of those is its label.
    pub(super) labels: Vec<Spot>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spot {
    pub(super) row: usize,
    pub(super) x: f64,
}

const BEND: Extent = Extent {
    left: 6.0,
    right: 6.0,
};

/// Long edges are to be straight before boxes are to be centred.
const STRAIGHT: f64 = 8.0;
const LABEL: f64 = 2.0;
const FRAME: f64 = 1.0;

impl Sketch {
    pub(super) fn layout(&self) -> Layout {
        let mut arrangement = Arrangement::of(self);
        arrangement.order();
        arrangement.place();
        arrangement.finish(self)
    }
}

/// Boxes first, then labels and bends, each with a number.
#[derive(Default)]
pub(super) struct Arrangement {
    pub(super) items: Vec<Item>,
    pub(super) rows: Vec<Vec<usize>>,
    /// For each link the items it passes, its boxes left out.
    pub(super) chains: Vec<Vec<usize>>,
    labels: Vec<usize>,
}

#[derive(Default)]
pub(super) struct Item {
    pub(super) row: usize,
    pub(super) extent: Extent,
    /// How much its wish counts against those of its neighbours in the row.
    pub(super) weight: f64,
    pub(super) x: f64,
    pub(super) above: Vec<usize>,
    pub(super) below: Vec<usize>,
}

impl Arrangement {
    fn of(sketch: &Sketch) -> Self {
        let mut arrangement = Self::default();
        for (extent, layer) in sketch.boxes.iter().zip(layers(sketch)) {
            arrangement.add(2 * layer, *extent, FRAME);
        }
        for link in &sketch.links {
            arrangement.link(link);
        }
        arrangement
    }

    fn add(&mut self, row: usize, extent: Extent, weight: f64) -> usize {
        let number = self.items.len();
        self.items.push(Item {
            row,
            extent,
            weight,
            ..Item::default()
        });
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        if let Some(items) = self.rows.get_mut(row) {
            items.push(number);
        }
        number
    }

    fn link(&mut self, link: &Link) {
        let down = self.row(link.from) < self.row(link.to);
        let (upper, lower) = if down {
            (link.from, link.to)
        } else {
            (link.to, link.from)
        };
        let label = Extent {
            left: 4.0,
            right: link.label + 8.0,
        };
        let mut last = upper;
        let mut chain = Vec::new();
        for row in self.row(upper) + 1..self.row(lower) {
            let (extent, weight) = if chain.is_empty() {
                (label, LABEL)
            } else {
                (BEND, STRAIGHT)
            };
            let item = self.add(row, extent, weight);
            self.join(last, item);
            chain.push(item);
            last = item;
        }
        self.join(last, lower);
        self.labels.extend(chain.first());
        if !down {
            chain.reverse();
        }
        self.chains.push(chain);
    }

    fn join(&mut self, upper: usize, lower: usize) {
        if let Some(item) = self.items.get_mut(upper) {
            item.below.push(lower);
        }
        if let Some(item) = self.items.get_mut(lower) {
            item.above.push(upper);
        }
    }

    fn finish(mut self, sketch: &Sketch) -> Layout {
        let lefts = self.items.iter().map(|item| item.x - item.extent.left);
        let left = lefts.fold(f64::INFINITY, f64::min);
        for item in &mut self.items {
            item.x -= left;
        }
        let rights = self.items.iter().map(|item| item.x + item.extent.right);
        let width = rights.fold(0.0, f64::max);
        let spot = |number: &usize| Spot {
            row: self.row(*number),
            x: self.x(*number),
        };
        Layout {
            rows: self.rows.len(),
            width,
            boxes: (0..sketch.boxes.len())
                .map(|number| spot(&number))
                .collect(),
            paths: self
                .chains
                .iter()
                .map(|chain| chain.iter().map(spot).collect())
                .collect(),
            labels: self.labels.iter().map(spot).collect(),
        }
    }

    fn row(&self, number: usize) -> usize {
        self.items.get(number).map_or(0, |item| item.row)
    }

    pub(super) fn x(&self, number: usize) -> f64 {
        self.items.get(number).map_or(0.0, |item| item.x)
    }
}
