/* The table of the methods of assignment. */
#include "tools/partition/plan.h"

static const struct {
	const char *name;
	gw_status (*assign)(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);
} methods[] = {
	[GW_PLAN_METIS] = {"metis", gw_assign_metis},          [GW_PLAN_RANDOM] = {"random", gw_assign_random},
	[GW_PLAN_KAMINPAR] = {"kaminpar", gw_assign_kaminpar}, [GW_PLAN_LP] = {"lp", gw_assign_lp},
	[GW_PLAN_GIVEN] = {"given", gw_assign_given},
};

const char *gw_plan_method_name(enum gw_plan_method method)
{
	return methods[method].name;
}

static bool is_refusal(gw_status status)
{
	return status == GW_LIMIT || status == GW_NO_MEMORY || status == GW_UNSUPPORTED;
}

gw_status gw_plan_choose(struct gw_plan *plan, const struct gw_part *part)
{
	if (plan->method != GW_PLAN_AUTO)
		return GW_OK;
	gw_status status = gw_metis_check(plan, part);
	plan->chosen = true;
	plan->method = GW_PLAN_METIS;
	if (is_refusal(status) && plan->objective == GW_PLAN_CUT) {
		status = gw_lp_check(plan, part);
		plan->method = is_refusal(status) ? GW_PLAN_RANDOM : GW_PLAN_LP;
	}
	return is_refusal(status) ? GW_OK : status;
}

gw_status gw_assign(struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment)
{
	gw_status status = methods[plan->method].assign(plan, part, assignment);
	while (status == GW_NO_MEMORY && plan->chosen && plan->objective == GW_PLAN_CUT &&
	       plan->method != GW_PLAN_RANDOM) {
		plan->method = plan->method == GW_PLAN_METIS ? GW_PLAN_LP : GW_PLAN_RANDOM;
		assignment->process = NULL;
		status = methods[plan->method].assign(plan, part, assignment);
	}
	return status;
}
