use std::sync::Arc;

use super::{GroupId, Names};
use crate::condition::{Circumstances, Condition, Prepared};
use crate::policy::group_and_parents;

/// Every group a policy speaks of.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    list: Vec<Group>,
    by_name: Names<Arc<str>, GroupId>,
    /// Whether any group has a condition.
    pub(super) conditional: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: Arc<str>,
    /// The group and all groups around it.
    pub(super) chain: Box<[GroupId]>,
    pub(super) condition: Option<Condition>,
    /// How many tools a request for it reaches.
    pub(super) tools: usize,
    pub(super) description: Option<String>,
}

impl Groups {
    /// The number of a group, given to it and to those around it when first heard of.
    pub(super) fn intern(&mut self, name: &str) -> GroupId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let parents: Vec<GroupId> = group_and_parents(name)
            .skip(1)
            .map(|parent| self.intern(parent))
            .collect();
        let id = GroupId::try_from(self.list.len()).unwrap_or(GroupId::MAX);
        let name: Arc<str> = name.into();
        self.by_name.insert(Arc::clone(&name), id);
        let chain = std::iter::once(id).chain(parents).collect();
        self.list.push(Group {
            name,
            chain,
            condition: None,
            tools: 0,
            description: None,
        });
        id
    }

    /// The groups of one more tool, and those with all groups around them, both sorted.
    pub(super) fn of_tool(&mut self, names: &[String]) -> (Box<[GroupId]>, Box<[GroupId]>) {
        let mut own: Vec<GroupId> = names.iter().map(|name| self.intern(name)).collect();
        own.sort_unstable();
        own.dedup();
        let chains = own.iter().flat_map(|group| self.chain(*group));
        let mut around: Vec<GroupId> = chains.copied().collect();
        around.sort_unstable();
        around.dedup();
        for group in &around {
            if let Some(group) = self.get_mut(*group) {
                group.tools += 1;
            }
        }
        (own.into(), around.into())
    }

    pub(super) fn id(&self, name: &str) -> Option<GroupId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn get(&self, id: GroupId) -> Option<&Group> {
        self.list.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.list.get_mut(id as usize)
    }

    pub(super) fn name(&self, id: GroupId) -> &str {
        self.get(id).map_or("", |group| &*group.name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        (0..).zip(&self.list)
    }

    /// The group and all groups around it.
    pub(super) fn chain(&self, id: GroupId) -> &[GroupId] {
        self.get(id).map_or(&[], |group| &group.chain)
    }
}

/// Which groups are on, asked once for each in one request.
pub(super) struct Activity<'c> {
    groups: &'c Groups,
    circumstances: &'c Circumstances,
    prepared: Option<Prepared<'c>>,
    known: Vec<Option<Switch>>,
}

/// Whether a group is on; where it cannot be told it is off, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
    Unevaluable(String),
}

impl<'c> Activity<'c> {
    pub(super) const fn new(groups: &'c Groups, circumstances: &'c Circumstances) -> Self {
        Self {
            groups,
            circumstances,
            prepared: None,
            known: Vec::new(),
        }
    }

    /// Whether a group and every group around it is on.
    pub(super) fn is_on(&mut self, group: GroupId) -> bool {
        if !self.groups.conditional {
            return true;
        }
        let groups = self.groups;
        let chain = groups.chain(group).iter();
        let mut on = true;
        for id in chain {
            on &= self.switch(*id) == Switch::On;
        }
        on
    }

    /// What the group's own condition says.
    pub(super) fn switch(&mut self, id: GroupId) -> Switch {
        let Some(condition) = self.groups.get(id).and_then(|it| it.condition.as_ref()) else {
            return Switch::On;
        };
        self.known.resize(self.groups.list.len(), None);
        if let Some(Some(known)) = self.known.get(id as usize) {
            return known.clone();
        }
        let circumstances = self.circumstances;
        let prepared = self
            .prepared
            .get_or_insert_with(|| Prepared::new(circumstances));
        let switch = match condition.holds_in(prepared) {
            Ok(true) => Switch::On,
            Ok(false) => Switch::Off,
            Err(unevaluable) => Switch::Unevaluable(unevaluable.to_string()),
        };
        if let Some(known) = self.known.get_mut(id as usize) {
            *known = Some(switch.clone());
        }
        switch
    }
}
