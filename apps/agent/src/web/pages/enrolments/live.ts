import { livePartial } from "@devplat/web-kit";
import { cardId, enrolmentCard, type CardPlace, type EnrolmentView } from "./card.ts";
import { ENROLMENT_LIST_ID, enrolmentList } from "./enrolments-page.ts";
import { SETUP_END_ID, setupEnd } from "./setup-page.ts";

const PLACES: readonly CardPlace[] = ["setup", "page"];

/** The parts of the wizard and of the enrolments' pages that change, for the live stream. */
export async function enrolmentPartials(views: readonly EnrolmentView[]): Promise<string> {
  const cards = views.flatMap((view) =>
    PLACES.map((place) =>
      livePartial(cardId(view.enrolment.key, place), enrolmentCard(view, place), "outerMorph"),
    ),
  );
  const list = livePartial(ENROLMENT_LIST_ID, enrolmentList(views.map(({ enrolment }) => enrolment)));
  const end = livePartial(SETUP_END_ID, setupEnd(views.filter(({ enrolment }) => enrolment.interactive)));
  return (await Promise.all([...cards, list, end])).join("");
}
