import { builtInDirectory, teamDirectoryConformance } from './team-directory-conformance.ts';

teamDirectoryConformance('built in (TEAM-13)', builtInDirectory);
