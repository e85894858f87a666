import { builtInDirectory, teamDirectoryConformance } from '../support/team-directory-conformance.ts';

teamDirectoryConformance('built in (TEAM-13)', builtInDirectory);
