use toolwarden_model::GroupName;

use super::{GroupId, NameMap};
use crate::condition::{Condition, ConditionContext, ConditionInputs};
use crate::policy::group_and_parents;

/// The name of an id that no group has.
static NO_GROUP: GroupName = GroupName::from_static("");

/// Every group that a policy mentions.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupTable {
    list: Vec<PolicyGroup>,
    by_name: NameMap<GroupName, GroupId>,
    /// Whether any group has a condition.
    pub(super) conditional: bool,
}

#[derive(Clone, Debug)]
pub(super) struct PolicyGroup {
    pub(super) name: GroupName,
    /// The group and all its parent groups.
    pub(super) chain: Box<[GroupId]>,
    pub(super) condition: Option<Condition>,
    /// The number of tools that a request for it reaches.
    pub(super) tools: usize,
    pub(super) description: Option<String>,
}

impl GroupTable {
    /// The number of a group, assigned to it and its parent groups when they first occur.
    pub(super) fn intern(&mut self, name: &GroupName) -> GroupId {
        if let Some(id) = self.by_name.get(name.as_str()) {
            return *id;
        }
        let parents: Vec<GroupId> = group_and_parents(name.as_str())
            .skip(1)
            .map(|parent| self.intern(&GroupName::new(parent)))
            .collect();
        let id = GroupId::try_from(self.list.len()).unwrap_or(GroupId::MAX);
        self.by_name.insert(name.clone(), id);
        let chain = std::iter::once(id).chain(parents).collect();
        self.list.push(PolicyGroup {
            name: name.clone(),
            chain,
            condition: None,
            tools: 0,
            description: None,
        });
        id
    }

    /// The groups of one more tool, and these together with all their parent groups, both sorted.
    pub(super) fn of_tool(&mut self, names: &[GroupName]) -> (Box<[GroupId]>, Box<[GroupId]>) {
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

    pub(super) fn get(&self, id: GroupId) -> Option<&PolicyGroup> {
        self.list.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut PolicyGroup> {
        self.list.get_mut(id as usize)
    }

    pub(super) fn name(&self, id: GroupId) -> &GroupName {
        self.get(id).map_or(&NO_GROUP, |group| &group.name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (GroupId, &PolicyGroup)> {
        (0..).zip(&self.list)
    }

    /// The group and all its parent groups.
    pub(super) fn chain(&self, id: GroupId) -> &[GroupId] {
        self.get(id).map_or(&[], |group| &group.chain)
    }
}

/// Which groups are active, evaluated at most once per group and request.
pub(super) struct ActiveGroups<'c> {
    groups: &'c GroupTable,
    condition_inputs: &'c ConditionInputs,
    prepared: Option<ConditionContext<'c>>,
    known: Vec<Option<GroupStatus>>,
}

/// Whether a group is active; if that cannot be evaluated it is off, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupStatus {
    On,
    Off,
    Unevaluable(String),
}

impl<'c> ActiveGroups<'c> {
    pub(super) const fn new(groups: &'c GroupTable, condition_inputs: &'c ConditionInputs) -> Self {
        Self {
            groups,
            condition_inputs,
            prepared: None,
            known: Vec::new(),
        }
    }

    /// Whether a group and every parent group is active.
    pub(super) fn is_on(&mut self, group: GroupId) -> bool {
        if !self.groups.conditional {
            return true;
        }
        let groups = self.groups;
        let chain = groups.chain(group).iter();
        let mut on = true;
        for id in chain {
            on &= self.status(*id) == GroupStatus::On;
        }
        on
    }

    /// The result of the group's own condition.
    pub(super) fn status(&mut self, id: GroupId) -> GroupStatus {
        let Some(condition) = self.groups.get(id).and_then(|it| it.condition.as_ref()) else {
            return GroupStatus::On;
        };
        self.known.resize(self.groups.list.len(), None);
        if let Some(Some(known)) = self.known.get(id as usize) {
            return known.clone();
        }
        let condition_inputs = self.condition_inputs;
        let prepared = self
            .prepared
            .get_or_insert_with(|| ConditionContext::new(condition_inputs));
        let switch = match condition.holds_in(prepared) {
            Ok(true) => GroupStatus::On,
            Ok(false) => GroupStatus::Off,
            Err(unevaluable) => GroupStatus::Unevaluable(unevaluable.to_string()),
        };
        if let Some(known) = self.known.get_mut(id as usize) {
            *known = Some(switch.clone());
        }
        switch
    }
}
